(* title: R2, convexity of heads
   keys: RETICENT:reacting-information
   says: The step for heads u (x) v, with |v| at most 1. R is an ordered field with square roots.
   leaves out: All else of R2: the inequality of Donsker and Varadhan, the chain rule, the divergence of a step, and
     that e^(L h) is convex. *)
From mathcomp Require Import all_ssreflect all_algebra.
From reticent Require Import algebra laws.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Heads.
Variable R : rcfType.
Implicit Types U I J : finType.

Definition convex (f : R -> R) :=
  forall a b t, 0 <= a -> 0 <= b -> 0 <= t <= 1 -> f (t * a + (1 - t) * b) <= t * f a + (1 - t) * f b.

Lemma jensen_seq J (r : seq J) (c a : J -> R) f :
  convex f -> (forall j, 0 <= c j) -> (forall j, 0 <= a j) ->
  (\sum_(j <- r) c j) * f ((\sum_(j <- r) c j * a j) / \sum_(j <- r) c j) <= \sum_(j <- r) c j * f (a j).
Proof.
move=> conv c0 a0; elim: r => [|j r IHr]; first by rewrite !big_nil !mul0r.
rewrite !big_cons; set C := \sum_(j <- r) c j in IHr *; set S := \sum_(j <- r) c j * a j in IHr *.
have C_ge0 : 0 <= C by exact: sumr_ge0.
have S_ge0 : 0 <= S by apply: sumr_ge0 => k _; rewrite mulr_ge0.
have [cj|cj] := eqVneq (c j) 0; first by rewrite cj !mul0r !add0r.
have cj_gt0 : 0 < c j by rewrite lt_neqAle eq_sym cj c0.
have T_gt0 : 0 < c j + C by rewrite ltr_paddr.
have T0 : c j + C != 0 by rewrite gt_eqF.
set t := c j / (c j + C).
have t1 : 1 - t = C / (c j + C) by apply: (mulIf T0); rewrite mulrBl mul1r !divfK // addrAC subrr add0r.
have S_C : C * (S / C) = S.
  have [C_0|C_0] := eqVneq C 0; last by rewrite mulrCA divff // mulr1.
  rewrite C_0 mul0r /S big1_seq // => k /andP[_ k_r]; apply/eqP; rewrite mulf_eq0; apply/orP; left.
  by move: C_0; rewrite /C => /eqP; rewrite psumr_eq0 // => /allP /(_ k k_r).
have -> : (c j * a j + S) / (c j + C) = t * a j + (1 - t) * (S / C).
  by rewrite t1 mulrDl [X in _ = _ + X]mulrAC S_C /t -!mulrA [_^-1 * a j]mulrC.
have t01 : 0 <= t <= 1.
  by apply/andP; split; last rewrite -subr_ge0 t1; rewrite divr_ge0 // ltW.
apply: (@le_trans _ _ ((c j + C) * (t * f (a j) + (1 - t) * f (S / C)))).
  by rewrite ler_wpmul2l ?(ltW T_gt0) //; apply: conv => //; rewrite divr_ge0.
have cancel x y : (c j + C) * (x / (c j + C) * y) = x * y by rewrite mulrA [(c j + C) * _]mulrC divfK.
by rewrite mulrDr t1 !cancel ler_add2l.
Qed.

Lemma jensen J (c a : J -> R) f :
  convex f -> (forall j, 0 <= c j) -> (forall j, 0 <= a j) -> \sum_j c j = 1 -> f (mean c a) <= mean c (f \o a).
Proof. by move=> conv c0 a0 c1; have := jensen_seq (index_enum J) conv c0 a0; rewrite c1 divr1 mul1r. Qed.

(* The vector M^T u. *)
Definition applied I J (M : I -> J -> R) (u : I -> R) (j : J) := dot (M^~ j) u.

(* The squared Frobenius norm of M: the sum over its columns. *)
Definition frobenius I J (M : I -> J -> R) := \sum_j dot (M^~ j) (M^~ j).

(* The mean of <g, g'> over two draws of w, where g = u (x) v. *)
Definition overlap_of_heads U I J (w : U -> R) (u : U -> I -> R) (v : U -> J -> R) :=
  mean w (fun t => mean w (fun t' => dot (u t) (u t') * dot (v t) (v t'))).

Definition crossed U I J (w : U -> R) (u : U -> I -> R) (v : U -> J -> R) i j := mean w (fun t => u t i * v t j).

Lemma dot_scaled I a (u v : I -> R) : dot (fun i => a * u i) v = a * dot u v.
Proof. by rewrite /dot big_distrr; apply: eq_bigr => i _ /=; rewrite mulrA. Qed.

(* Step 3 of R2, first part. *)
Lemma overlap_frobenius U I J (w : U -> R) (u : U -> I -> R) (v : U -> J -> R) :
  overlap_of_heads w u v = frobenius (crossed w u v).
Proof.
transitivity (\sum_j \sum_i \sum_t \sum_t' w t * (u t i * v t j) * (w t' * (u t' i * v t' j))); last first.
  apply: eq_bigr => j _; apply: eq_bigr => i _.
  by rewrite {1}/crossed /mean big_distrl; apply: eq_bigr => t _; rewrite big_distrr.
rewrite /overlap_of_heads /mean.
transitivity (\sum_t \sum_t' \sum_j \sum_i w t * (u t i * v t j) * (w t' * (u t' i * v t' j))).
  apply: eq_bigr => t _; rewrite big_distrr; apply: eq_bigr => t' _ /=.
  rewrite /dot !big_distrr; apply: eq_bigr => j _ /=.
  by rewrite big_distrl !big_distrr; apply: eq_bigr => i _ /=; rewrite head_terms.
under eq_bigr do rewrite exchange_big /=.
rewrite exchange_big; apply: eq_bigr => j _ /=; under eq_bigr do rewrite exchange_big /=.
by rewrite exchange_big.
Qed.

Lemma frobenius_mean U I J (w : U -> R) (u : U -> I -> R) (v : U -> J -> R) :
  frobenius (crossed w u v) = mean w (fun t => dot (applied (crossed w u v) (u t)) (v t)).
Proof.
set A := crossed w u v.
transitivity (\sum_j \sum_i \sum_t A i j * (w t * (u t i * v t j))).
  by apply: eq_bigr => j _; apply: eq_bigr => i _; rewrite -big_distrr.
under eq_bigr do rewrite exchange_big /=.
rewrite exchange_big; apply: eq_bigr => t _; rewrite /dot big_distrr; apply: eq_bigr => j _ /=.
rewrite /applied /dot big_distrl big_distrr; apply: eq_bigr => i _ /=.
by rewrite mulrCA; congr (_ * _); rewrite mulrA.
Qed.

Lemma frobenius_ge0 I J (M : I -> J -> R) : 0 <= frobenius M.
Proof. by apply: sumr_ge0 => j _; exact: dot_square_ge0. Qed.

Lemma applied_square_sum U I J (w : U -> R) (u : U -> I -> R) (M : I -> J -> R) :
  mean w (fun t => dot (applied M (u t)) (applied M (u t))) = \sum_j mean w (fun t => dot (M^~ j) (u t) ^+ 2).
Proof.
rewrite /mean exchange_big; apply: eq_bigr => t _; rewrite /dot big_distrr; apply: eq_bigr => j _ /=.
by rewrite -expr2.
Qed.
Lemma dot_zero I (a u : I -> R) : dot a a = 0 -> dot a u = 0.
Proof.
move=> a0; apply/eqP; rewrite -(sqrf_eq0 (dot a u)) eq_le sqr_ge0 andbT.
by apply: le_trans (dot_cauchy_schwarz _ _) _; rewrite a0 mul0r.
Qed.

(* The unit vector along a. *)
Definition unit_along I (a : I -> R) i := (Num.sqrt (dot a a))^-1 * a i.

Lemma along I (a : I -> R) :
  dot a a != 0 -> dot (unit_along a) (unit_along a) = 1 /\ forall u, dot a u ^+ 2 = dot a a * dot (unit_along a) u ^+ 2.
Proof.
move=> a0; have s2 : Num.sqrt (dot a a) ^+ 2 = dot a a by rewrite sqr_sqrtr // dot_square_ge0.
have E u : dot (unit_along a) u = (Num.sqrt (dot a a))^-1 * dot a u by exact: dot_scaled.
have turn (x y : I -> R) : dot x y = dot y x by apply: eq_bigr => i _; rewrite mulrC.
split=> [|u]; last by rewrite E exprMn exprVn s2 mulrA divff // mul1r.
by rewrite E turn E mulrA -invfM -expr2 s2 mulVf.
Qed.

Lemma axes U I (w : U -> R) (u : U -> I -> R) Q :
  (forall e, dot e e = 1 -> mean w (fun t => dot e (u t) ^+ 2) <= Q) ->
  forall a, mean w (fun t => dot a (u t) ^+ 2) <= dot a a * Q.
Proof.
move=> le_Q a; have [a0|a0] := eqVneq (dot a a) 0.
  by rewrite a0 mul0r /mean big1 // => t _; rewrite dot_zero // expr0n mulr0.
have [e1 E] := along a0; have := le_Q _ e1; rewrite -(ler_pmul2l (_ : 0 < dot a a)); last first.
  by rewrite lt_neqAle eq_sym a0 dot_square_ge0.
by apply: le_trans; rewrite /mean big_distrr; apply: ler_sum => t _ /=; rewrite E mulrCA.
Qed.
End Heads.

(* What bounds the second moment along each axis bounds it for heads. *)
Theorem heads_second_moment (R : rcfType) (U I J : finType) (w : U -> R) (u : U -> I -> R) (v : U -> J -> R) (Q : R) :
  law w -> (forall t, dot (v t) (v t) <= 1) -> 0 <= Q ->
  (forall e, dot e e = 1 -> mean w (fun t => dot e (u t) ^+ 2) <= Q) ->
  overlap_of_heads w u v <= Q.
Proof.
move=> [w0 w1] v1 Q0 le_Q; rewrite overlap_frobenius; set A := crossed w u v; set s := frobenius A.
have [->//|s0] := eqVneq s 0; have s_gt0 : 0 < s by rewrite lt_neqAle eq_sym s0 frobenius_ge0.
rewrite -(ler_pmul2l s_gt0) -expr2.
apply: (@le_trans _ _ (\sum_j mean w (fun t => dot (A^~ j) (u t) ^+ 2))); last first.
  by rewrite /s /frobenius big_distrl; apply: ler_sum => j _; exact: axes.
rewrite -applied_square_sum {1}/s frobenius_mean -/A.
have -> : mean w (fun t => dot (applied A (u t)) (v t)) = mean w (fun t => dot (applied A (u t)) (v t) * 1).
  by apply: eq_bigr => t _; rewrite mulr1.
apply: le_trans (cauchy_schwarz _ _ w0) _.
have -> : mean w (fun=> 1 ^+ 2) = 1 by rewrite -[RHS]w1; apply: eq_bigr => t _; rewrite expr1n mulr1.
rewrite mulr1; apply: ler_sum => t _; rewrite ler_wpmul2l //.
by apply: le_trans (dot_cauchy_schwarz _ _) _; rewrite ler_pimulr // dot_square_ge0.
Qed.

(* The mean length of M^T u, over |M| = 1, bounds heads. *)
Theorem heads_mean_length (R : rcfType) (U I J : finType) (w : U -> R) (u : U -> I -> R) (v : U -> J -> R) (N : R) :
  law w -> (forall t, dot (v t) (v t) <= 1) ->
  (forall M : I -> J -> R, frobenius M = 1 ->
     mean w (fun t => Num.sqrt (dot (applied M (u t)) (applied M (u t)))) <= N) ->
  overlap_of_heads w u v <= N ^+ 2.
Proof.
move=> [w0 w1] v1 le_N; rewrite overlap_frobenius; set A := crossed w u v; set s := frobenius A.
have [->|s0] := eqVneq s 0; first exact: sqr_ge0.
have s_gt0 : 0 < s by rewrite lt_neqAle eq_sym s0 frobenius_ge0.
have r_gt0 : 0 < Num.sqrt s by rewrite sqrtr_gt0.
have r2 : Num.sqrt s ^+ 2 = s by rewrite sqr_sqrtr // ltW.
pose M i j := (Num.sqrt s)^-1 * A i j.
have M1 : frobenius M = 1.
  have -> : frobenius M = (Num.sqrt s) ^- 2 * s.
    rewrite /s /frobenius big_distrr; apply: eq_bigr => j _ /=; rewrite /dot big_distrr; apply: eq_bigr => i _ /=.
    by rewrite /M mulrACA -invfM -expr2.
  by rewrite r2 mulVf.
suff le_r : Num.sqrt s <= N by rewrite -r2 ler_expn2r ?nnegrE ?(ltW r_gt0) // (le_trans (ltW r_gt0)).
apply: le_trans (le_N M M1); rewrite -(ler_pmul2l r_gt0) -expr2 r2 {1}/s frobenius_mean -/A /mean big_distrr.
apply: ler_sum => t _ /=; rewrite mulrCA ler_wpmul2l //.
have -> : dot (applied A (u t)) (v t) = Num.sqrt s * dot (applied M (u t)) (v t).
  rewrite -dot_scaled; apply: eq_bigr => j _; congr (_ * _); rewrite -dot_scaled; apply: eq_bigr => i _.
  by rewrite /M mulrA divff ?mul1r // gt_eqF.
rewrite ler_wpmul2l ?(ltW r_gt0) //; apply: le_trans (ler_norm _) _.
rewrite -sqrtr_sqr ler_wsqrtr //; apply: le_trans (dot_cauchy_schwarz _ _) _.
by rewrite ler_pimulr // dot_square_ge0.
Qed.

(* Convexity: a bound along each axis bounds |M^T u|^2, for |M| = 1. *)
Theorem heads_convexity (R : rcfType) (U I J : finType) (w : U -> R) (u : U -> I -> R) (M : I -> J -> R) f C :
  law w -> convex f -> frobenius M = 1 ->
  (forall e, dot e e = 1 -> mean w (fun t => f (dot e (u t) ^+ 2)) <= C) ->
  mean w (fun t => f (dot (applied M (u t)) (applied M (u t)))) <= C.
Proof.
move=> [w0 w1] conv M1 le_C; pose c j := dot (M^~ j) (M^~ j); pose e j := unit_along (M^~ j).
have E t : dot (applied M (u t)) (applied M (u t)) = mean c (fun j => dot (e j) (u t) ^+ 2).
  apply: eq_bigr => j _; rewrite -expr2 /applied.
  have [c0|c0] := eqVneq (c j) 0; first by rewrite dot_zero // c0 mul0r expr0n.
  by have [_ ->] := along c0.
apply: (@le_trans _ _ (mean w (fun t => mean c (fun j => f (dot (e j) (u t) ^+ 2))))).
  apply: ler_sum => t _; rewrite ler_wpmul2l // E; apply: jensen => // j; first exact: dot_square_ge0.
  exact: sqr_ge0.
rewrite /mean; under eq_bigr do rewrite big_distrr /=.
rewrite exchange_big /= -[leRHS]mul1r -M1 /frobenius big_distrl /=; apply: ler_sum => j _.
have [c0|c0] := eqVneq (c j) 0.
  by rewrite -/(c j) c0 mul0r big1 // => t _; rewrite mul0r mulr0.
under eq_bigr do rewrite mulrCA.
rewrite -big_distrr /= ler_wpmul2l ?dot_square_ge0 //; apply: le_C; exact: (along c0).1.
Qed.
