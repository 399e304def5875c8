(* title: Means and inner products *)
From Coq Require Import Ring.
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Identities.
Variable R : comRingType.
Let T : Type := R.
Let add : T -> T -> T := @GRing.add R.
Let mul : T -> T -> T := @GRing.mul R.
Let opp : T -> T := @GRing.opp R.
Let sub a b := add a (opp b).
Let zero : T := 0.
Let one : T := 1.

Lemma is_ring : ring_theory zero one add mul sub opp eq.
Proof.
split; [exact: add0r|exact: addrC|exact: addrA|exact: mul1r|exact: mulrC|exact: mulrA|exact: mulrDl|by []|exact: subrr].
Qed.
Add Ring the_ring : is_ring.

(* Coq's ring, told which operations are those of R. *)
Ltac by_ring :=
  rewrite ?expr2 ?mulr2n; match goal with |- @eq _ ?a ?b => change (@eq T a b) end;
  repeat match goal with
  | |- context [@GRing.add _ ?a ?b] => change (@GRing.add _ a b) with (add a b)
  | |- context [@GRing.mul _ ?a ?b] => change (@GRing.mul _ a b) with (mul a b)
  | |- context [@GRing.opp _ ?a] => change (@GRing.opp _ a) with (opp a)
  | |- context [GRing.zero _] => change (GRing.zero _) with zero
  | |- context [GRing.one _] => change (GRing.one _) with one
  end; ring.

Lemma crossed_square (w w' f f' g g' : R) :
  w * w' * (f * g' - f' * g) ^+ 2 =
  w * f ^+ 2 * (w' * g' ^+ 2) + w * g ^+ 2 * (w' * f' ^+ 2) - (w * (f * g) * (w' * (f' * g'))) *+ 2.
Proof. by_ring. Qed.

Lemma mixed_product (p n m m' i : R) :
  n * i = 1 ->
  ((1 - p) * n + p * m) * ((1 - p) * n + p * m') * i =
  (1 - p) ^+ 2 * n + (1 - p) * p * (m + m') + p ^+ 2 * (m * m' * i).
Proof.
move=> ni; transitivity ((1 - p) ^+ 2 * n * (n * i) + (1 - p) * p * (m + m') * (n * i) + p ^+ 2 * (m * m' * i)).
  by_ring.
by rewrite ni !mulr1.
Qed.

Lemma mixed_total (p c : R) : (1 - p) ^+ 2 + (1 - p) * p * (1 + 1) + p ^+ 2 * c = 1 + p ^+ 2 * (c - 1).
Proof. by_ring. Qed.

Lemma ratio_square (n m i : R) : n * i = 1 -> n * (m * i - 1) ^+ 2 = m * m * i - (m *+ 2 - n).
Proof.
move=> ni; transitivity (m * m * i * (n * i) - (m * (n * i) *+ 2 - n)); first by_ring.
by rewrite ni !mulr1.
Qed.

Lemma moved_square (f a : R) : (f - a) ^+ 2 = f ^+ 2 + (a ^+ 2 - f * a *+ 2).
Proof. by_ring. Qed.

Lemma variance (a : R) : a + (a ^+ 2 - a * a *+ 2) = a * (1 - a).
Proof. by_ring. Qed.

Lemma head_terms (a b u u' v v' : R) : a * (b * (u * u' * (v * v'))) = a * (u * v) * (b * (u' * v')).
Proof. by_ring. Qed.

Lemma exchanged_products (f g a b : R) : f * b + g * a - (f * a + g * b) = (g - f) * (a - b).
Proof. by_ring. Qed.
End Identities.

Section Means.
Variable R : realFieldType.
Implicit Types Y I : finType.

(* The mean of f with weights w. *)
Definition mean Y (w f : Y -> R) := \sum_y w y * f y.

Lemma cauchy_schwarz Y (w f g : Y -> R) :
  (forall y, 0 <= w y) ->
  mean w (fun y => f y * g y) ^+ 2 <= mean w (fun y => f y ^+ 2) * mean w (fun y => g y ^+ 2).
Proof.
move=> w0; rewrite -subr_ge0 -(pmulrn_lge0 _ (isT : (0 < 2)%N)).
suff -> : (mean w (fun y => f y ^+ 2) * mean w (fun y => g y ^+ 2) - mean w (fun y => f y * g y) ^+ 2) *+ 2 =
    \sum_y \sum_z w y * w z * (f y * g z - f z * g y) ^+ 2.
  by apply: sumr_ge0 => y _; apply: sumr_ge0 => z _; rewrite mulr_ge0 ?sqr_ge0 ?mulr_ge0.
have E y : \sum_z w y * w z * (f y * g z - f z * g y) ^+ 2 =
    w y * f y ^+ 2 * mean w (fun z => g z ^+ 2) + w y * g y ^+ 2 * mean w (fun z => f z ^+ 2) -
    (w y * (f y * g y) * mean w (fun z => f z * g z)) *+ 2.
  by under eq_bigr do rewrite crossed_square; rewrite sumrB big_split sumrMnl -!big_distrr.
under [RHS]eq_bigr do rewrite E.
rewrite sumrB big_split sumrMnl -!big_distrl /= mulrnBl mulr2n expr2.
by congr (_ + _ - _); rewrite mulrC.
Qed.

Definition dot I (u v : I -> R) := \sum_i u i * v i.

Lemma dot_square_ge0 I (u : I -> R) : 0 <= dot u u.
Proof. by apply: sumr_ge0 => i _; rewrite -expr2 sqr_ge0. Qed.

Lemma dot_cauchy_schwarz I (u v : I -> R) : dot u v ^+ 2 <= dot u u * dot v v.
Proof.
have E (a b : I -> R) : dot a b = mean (fun=> 1) (fun i => a i * b i) by apply: eq_bigr => i _; rewrite mul1r.
by rewrite !E; apply: cauchy_schwarz => _; exact: ler01.
Qed.
End Means.
