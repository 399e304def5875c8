(* title: Words of all theorems
   says: R is an ordered field, such as the real numbers. Pairs are compared as in Python, by delta at every x. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Words.
Variable R : realFieldType.
Implicit Types Y Z : finType.

(* The law of an outcome. Outcomes are finitely many. *)
Definition law Y (P : Y -> R) := (forall y, 0 <= P y) /\ \sum_y P y = 1.

(* delta at epsilon, with x = e^epsilon. P is the law without the target ("absent"), Q the law with it ("present"). *)
Definition delta Y (x : R) (P Q : Y -> R) := \sum_y Num.max (Q y - x * P y) 0.

(* The release (A, B) is dominated by the pair (P, Q): its delta is at most that of the pair at every x >= 0. This is
   what accountants compare. *)
Definition dominated Y Z (A B : Y -> R) (P Q : Z -> R) := forall x, 0 <= x -> delta x A B <= delta x P Q.

(* With probability p the second law, else the first. *)
Definition mixed Y (p : R) (P Q : Y -> R) (y : Y) := (1 - p) * P y + p * Q y.

(* One release, then another whose laws may depend on the first outcome. *)
Definition followed Y Z (P : Y -> R) (P' : Y -> Z -> R) (yz : Y * Z) := P yz.1 * P' yz.1 yz.2.

(* What n steps released, and its law where each step may react to all steps before. *)
Fixpoint run Y n : finType := if n is m.+1 then [finType of run Y m * Y] else [finType of unit].
Fixpoint run_law Y (P : forall n, run Y n -> Y -> R) n : run Y n -> R :=
  if n is m.+1 then followed (@run_law Y P m) (P m) else fun=> 1.
Arguments run_law {Y} P n _.

(* Delta with weights for both laws, which may be negative. *)
Definition gain Y (s t : R) (P Q : Y -> R) := \sum_y Num.max (s * Q y - t * P y) 0.

Lemma gain_scaled Y c s t (P Q : Y -> R) : 0 <= c -> gain (c * s) (c * t) P Q = c * gain s t P Q.
Proof.
move=> c0; rewrite /gain big_distrr; apply: eq_bigr => y _ /=.
by rewrite maxr_pmulr // mulr0 mulrBr !mulrA.
Qed.

Lemma delta_gain Y x (P Q : Y -> R) : delta x P Q = gain 1 x P Q.
Proof. by apply: eq_bigr => y _; rewrite mul1r. Qed.

Lemma gain_delta Y s t (P Q : Y -> R) : 0 < s -> gain s t P Q = s * delta (t / s) P Q.
Proof. by move=> s0; rewrite delta_gain -gain_scaled ?ltW // mulr1 mulrCA divff ?mulr1 // gt_eqF. Qed.

Lemma gain_swapped Y s t (P Q : Y -> R) : law P -> law Q -> gain s t P Q = s - t + gain t s Q P.
Proof.
case=> _ P1 [_ Q1].
have <- : \sum_y (s * Q y - t * P y) = s - t by rewrite sumrB -!big_distrr /= P1 Q1 !mulr1.
rewrite /gain -big_split; apply: eq_bigr => y _ /=.
set a := s * Q y; set b := t * P y.
by rewrite -(opprB a b) addr_maxr addr0 subrr maxC.
Qed.

Lemma gain0 Y s t (P Q : Y -> R) : law P -> law Q -> s <= 0 -> 0 <= t -> gain s t P Q = 0.
Proof.
move=> [P0 _] [Q0 _] s0 t0; apply: big1 => y _; apply/max_idPr.
by rewrite subr_le0 (@le_trans _ _ 0) // ?mulr_le0_ge0 // mulr_ge0.
Qed.

(* Domination holds for all weights, and so with both laws exchanged. *)
Lemma dominated_gain Y Z (A B : Y -> R) (P Q : Z -> R) :
  law A -> law B -> law P -> law Q -> dominated A B P Q -> forall s t, gain s t A B <= gain s t P Q.
Proof.
move=> lA lB lP lQ dom s t.
have pos s' t' : 0 < s' -> 0 <= t' -> gain s' t' A B <= gain s' t' P Q.
  by move=> s0 t0; rewrite !gain_delta // ler_pmul2l // dom // divr_ge0 // ltW.
have [s0|s0] := ltP 0 s; have [t0|t0] := leP 0 t.
- exact: pos.
- by rewrite !(gain_swapped s t) // !(gain0 _ _ (ltW t0) (ltW s0)).
- by rewrite !gain0.
rewrite !(gain_swapped s t) // ler_add2l.
have swap (T : finType) (C D : T -> R) : gain t s D C = gain (- s) (- t) C D.
  by apply: eq_bigr => y _; rewrite !mulNr opprK addrC.
rewrite !swap; have [->|s1] := eqVneq s 0; first by rewrite oppr0 !gain0 // oppr_ge0 ltW.
by rewrite pos ?oppr_ge0 ?oppr_gt0 ?ltW // lt_neqAle s1.
Qed.

Lemma dominated_exchanged Y Z (A B : Y -> R) (P Q : Z -> R) :
  law A -> law B -> law P -> law Q -> dominated A B P Q -> dominated B A Q P.
Proof.
move=> lA lB lP lQ /(dominated_gain lA lB lP lQ) dom x _.
by rewrite !delta_gain !(gain_swapped 1 x) // ler_add2l dom.
Qed.

(* Delta is the best that a test can do: its power less x times its false positive rate. *)
Lemma delta_of_tests Y x (P Q phi : Y -> R) :
  (forall y, 0 <= phi y <= 1) -> \sum_y phi y * Q y - x * (\sum_y phi y * P y) <= delta x P Q.
Proof.
move=> phi01; rewrite big_distrr -sumrB; apply: ler_sum => y _ /=.
rewrite mulrCA -mulrBr; have /andP[f0 f1] := phi01 y; have [q|q] := leP 0 (Q y - x * P y).
  by rewrite ler_pimull.
by rewrite mulr_ge0_le0 // ltW.
Qed.

Lemma delta_attained Y x (P Q : Y -> R) :
  exists2 phi : Y -> R, forall y, 0 <= phi y <= 1 & \sum_y phi y * Q y - x * (\sum_y phi y * P y) = delta x P Q.
Proof.
exists (fun y => if 0 <= Q y - x * P y then 1 else 0) => [y|]; first by case: ifP; rewrite ?ler01 ?lexx.
rewrite big_distrr -sumrB; apply: eq_bigr => y _ /=; rewrite mulrCA -mulrBr.
by have [q|q] := leP 0 (Q y - x * P y); rewrite ?mul1r ?mul0r.
Qed.

Lemma mixed_law Y p (P Q : Y -> R) : 0 <= p <= 1 -> law P -> law Q -> law (mixed p P Q).
Proof.
case/andP=> p0 p1 [P0 P1] [Q0 Q1]; split=> [y|]; first by rewrite addr_ge0 ?mulr_ge0 ?subr_ge0.
by rewrite big_split -!big_distrr /= P1 Q1 !mulr1 subrK.
Qed.

Lemma sum_then Y Z (F : Y -> Z -> R) : \sum_(yz : Y * Z) F yz.1 yz.2 = \sum_y \sum_z F y z.
Proof. by rewrite pair_bigA. Qed.

Lemma then_law Y Z (P : Y -> R) (P' : Y -> Z -> R) : law P -> (forall y, law (P' y)) -> law (followed P P').
Proof.
move=> [P0 P1] lP'; split=> [[y z]|]; first by rewrite mulr_ge0 //; exact: (lP' y).1.
rewrite (sum_then (fun y z => P y * P' y z)) -[RHS]P1; apply: eq_bigr => y _.
by rewrite -big_distrr /= (lP' y).2 mulr1.
Qed.

Lemma run_law_law Y (P : forall n, run Y n -> Y -> R) n : (forall m h, law (P m h)) -> law (run_law P n).
Proof.
move=> lP; elim: n => [|n IHn]; last exact: then_law.
by split=> [y|]; rewrite ?ler01 //= big_const card_unit /= addr0.
Qed.
End Words.
Arguments run_law {R Y} P n _.
