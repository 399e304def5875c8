(* title: Composition of dominating pairs
   keys: DONG2022:Theorem 3.2
   says: Each step may react to all steps before.
   leaves out: That delta at every x orders pairs as their trade-off curves do. *)
From mathcomp Require Import all_ssreflect all_algebra.
From reticent Require Import laws.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Composition.
Variable R : realFieldType.
Implicit Types Y Z : finType.

(* Two releases: the second, whatever the first one showed, is dominated by (P2, Q2). *)
Lemma two_releases Y Y' Z Z' (A B : Y -> R) (A2 B2 : Y -> Y' -> R) (P Q : Z -> R) (P2 Q2 : Z' -> R) :
  law A -> law B -> law P -> law Q -> law P2 -> law Q2 -> (forall y, law (A2 y) /\ law (B2 y)) ->
  dominated A B P Q -> (forall y, dominated (A2 y) (B2 y) P2 Q2) ->
  dominated (followed A A2) (followed B B2) (followed P (fun=> P2)) (followed Q (fun=> Q2)).
Proof.
move=> lA lB lP lQ lP2 lQ2 l2 dom dom2 x x0.
have parts (T T' : finType) (C D : T -> R) (C2 D2 : T -> T' -> R) :
    delta x (followed C C2) (followed D D2) = \sum_y gain (D y) (x * C y) (C2 y) (D2 y).
  rewrite /delta /gain (sum_then (fun y z => Num.max (D y * D2 y z - x * (C y * C2 y z)) 0)).
  by apply: eq_bigr => y _; apply: eq_bigr => z _; rewrite mulrA.
apply: (@le_trans _ _ (\sum_y gain (B y) (x * A y) P2 Q2)).
  by rewrite parts; apply: ler_sum => y _; apply: dominated_gain; try exact: dom2; case: (l2 y).
rewrite parts /gain exchange_big [leRHS]exchange_big /=; apply: ler_sum => z _.
have turn (T : finType) (C D : T -> R) :
    \sum_y Num.max (D y * Q2 z - x * C y * P2 z) 0 = gain (Q2 z) (x * P2 z) C D.
  by apply: eq_bigr => y _; rewrite [D y * _]mulrC [x * _ * _]mulrAC.
by rewrite !turn; apply: dominated_gain.
Qed.

End Composition.

Theorem composition (R : realFieldType) (Y Z : finType) (A B : forall n, run Y n -> Y -> R) (P Q : nat -> Z -> R) :
  (forall n h, law (A n h) /\ law (B n h)) -> (forall n, law (P n) /\ law (Q n)) ->
  (forall n h, dominated (A n h) (B n h) (P n) (Q n)) ->
  forall n, dominated (run_law A n) (run_law B n) (run_law (fun m _ => P m) n) (run_law (fun m _ => Q m) n).
Proof.
move=> lAB lPQ dom; elim=> [|n IHn].
  by move=> x _; rewrite /delta /= !big_const !card_unit.
have lA m h : law (A m h) by case: (lAB m h).
have lB m h : law (B m h) by case: (lAB m h).
have [lP lQ] : law (P n) /\ law (Q n) := lPQ n.
apply: two_releases => //; try exact: dom; try by apply: run_law_law => // m _; case: (lPQ m).
Qed.
