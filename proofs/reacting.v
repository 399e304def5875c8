(* title: R1, one direction with any length
   keys: RETICENT:reacting-second-moment
   says: u is all that is hidden. What the target adds may react to it and to all steps before.
   leaves out: That the overlap of N(g, s^2 I) and N(g', s^2 I) is e^(<g, g'> / s^2); the mean over the sphere; delta
     from chi-square. *)
From mathcomp Require Import all_ssreflect all_algebra.
From reticent Require Import algebra laws.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Moments.
Variable R : realFieldType.
Implicit Types U Y : finType.

(* The mean under N of the product of the likelihood ratios M / N and M' / N. *)
Definition overlap Y (N M M' : Y -> R) := \sum_y M y * M' y / N y.

Definition chi_square Y (P1 P0 : Y -> R) := overlap P0 P1 P1 - 1.

(* n steps without the target: each shows noise, with law N. *)
Definition absent Y (N : Y -> R) n : run Y n -> R := run_law (fun _ _ => N) n.
Arguments absent {Y} N n _.

(* n steps with it. u is drawn once, with weights w. Each step is M u, which may react to the steps before, with
   probability p, and else N. *)
Definition present U Y (w : U -> R) (N : Y -> R) (M : U -> forall n, run Y n -> Y -> R) p n (y : run Y n) :=
  mean w (fun u => run_law (fun m h => mixed p N (M u m h)) n y).
Arguments present {U Y} w N M p n _.

Lemma overlap_mixed Y p (N M M' : Y -> R) :
  (forall y, 0 < N y) -> law N -> law M -> law M' ->
  overlap N (mixed p N M) (mixed p N M') = 1 + p ^+ 2 * (overlap N M M' - 1).
Proof.
move=> N0 [_ N1] [_ M1] [_ M1']; rewrite /overlap /mixed.
under eq_bigr do rewrite mixed_product ?divff ?gt_eqF //.
by rewrite !big_split -!big_distrr big_split /= N1 M1 M1' mulr1 mixed_total.
Qed.

Lemma overlap_ge0 Y (N M M' : Y -> R) : law N -> law M -> law M' -> 0 <= overlap N M M'.
Proof. by move=> [N0 _] [M0 _] [M0' _]; apply: sumr_ge0 => y _; rewrite divr_ge0 ?mulr_ge0. Qed.

(* Backwards, from the last step: its mean given the steps before is at most a constant. *)
Lemma overlap_run Y (N : Y -> R) (A B : forall n, run Y n -> Y -> R) b n :
  (forall y, 0 < N y) -> law N -> (forall m h, law (A m h) /\ law (B m h)) ->
  (forall m h, overlap N (A m h) (B m h) <= b) -> 0 <= b ->
  overlap (absent N n) (run_law A n) (run_law B n) <= b ^+ n.
Proof.
move=> N0 lN lAB le_b b0; elim: n => [|n IHn].
  by rewrite /overlap /absent /= big_const card_unit /= addr0 expr0 mulr1 divr1.
have lA m h : law (A m h) by case: (lAB m h).
have lB m h : law (B m h) by case: (lAB m h).
rewrite exprS /overlap /absent /= /followed.
set F := fun h y => run_law A n h * A n h y * (run_law B n h * B n h y) / (run_law (fun _ _ => N) n h * N y).
rewrite (sum_then F).
have E h : \sum_y F h y =
    run_law A n h * run_law B n h / run_law (fun _ _ => N) n h * overlap N (A n h) (B n h).
  rewrite big_distrr; apply: eq_bigr => y _ /=.
  by rewrite /F invfM [X in X * _]mulrACA [LHS]mulrACA.
under eq_bigr do rewrite E.
apply: (@le_trans _ _ (\sum_h run_law A n h * run_law B n h / run_law (fun _ _ => N) n h * b)).
  have [A0 _] : law (run_law A n) by exact: run_law_law.
  have [B0 _] : law (run_law B n) by exact: run_law_law.
  have [noise0 _] : law (run_law (fun _ _ => N) n) by exact: run_law_law.
  by apply: ler_sum => h _; rewrite ler_wpmul2l ?divr_ge0 ?mulr_ge0.
by rewrite -big_distrl /= mulrC ler_wpmul2l.
Qed.

End Moments.
Arguments absent {R Y} N n _.
Arguments present {R U Y} w N M p n _.

(* For normal noise the overlap of the shifts g and g' is e^(<g, g'> / s^2), and so kappa is e^(K / s^2). *)
Theorem reacting_second_moment (R : realFieldType) (U Y : finType) (w : U -> R) (N : Y -> R)
    (M : U -> forall n, run Y n -> Y -> R) (p : R) (kappa : U -> U -> R) :
  law w -> law N -> (forall y, 0 < N y) -> (forall u n h, law (M u n h)) -> 0 <= p <= 1 ->
  (forall u u' n h, overlap N (M u n h) (M u' n h) <= kappa u u') ->
  forall n, chi_square (present w N M p n) (absent N n) <=
            mean w (fun u => mean w (fun u' => (1 + p ^+ 2 * (kappa u u' - 1)) ^+ n)) - 1.
Proof.
move=> [w0 w1] lN N0 lM p01 le_k n; rewrite ler_add2r.
have E : overlap (absent N n) (present w N M p n) (present w N M p n) =
  mean w (fun u => mean w (fun u' => overlap (absent N n)
    (run_law (fun m h => mixed p N (M u m h)) n) (run_law (fun m h => mixed p N (M u' m h)) n))).
  rewrite /overlap /present /mean; under [RHS]eq_bigr do rewrite big_distrr /=.
  under [RHS]eq_bigr do under eq_bigr do rewrite !big_distrr /=.
  under [RHS]eq_bigr do rewrite exchange_big /=.
  rewrite [RHS]exchange_big; apply: eq_bigr => y _ /=.
  rewrite -mulrA big_distrl /=; apply: eq_bigr => u _; rewrite -!mulrA big_distrl !big_distrr /=.
  by apply: eq_bigr => u' _; congr (_ * _); rewrite -!mulrA mulrCA.
rewrite E; apply: ler_sum => u _; rewrite ler_wpmul2l //; apply: ler_sum => u' _; rewrite ler_wpmul2l //.
have lX v m h : law (mixed p N (M v m h)) by exact: mixed_law.
have one m h : overlap N (mixed p N (M u m h)) (mixed p N (M u' m h)) <= 1 + p ^+ 2 * (kappa u u' - 1).
  by rewrite overlap_mixed // ler_add2l ler_wpmul2l ?sqr_ge0 // ler_add2r.
apply: overlap_run => //.
have h0 : run Y 0 := tt.
by apply: le_trans (one _ h0); exact: overlap_ge0.
Qed.

(* One direction, any length along it and never against it: K(u, u') = max(<u, u'>, 0). The function expx is x ->
   e^(x / s^2) for normal noise; the proof needs that it grows. *)
Corollary one_direction (R : realFieldType) (U Y I : finType) (w : U -> R) (N : Y -> R)
    (M : U -> forall n, run Y n -> Y -> R) (p : R) (expx : R -> R) (dir : U -> I -> R)
    (c : U -> forall n, run Y n -> R) :
  law w -> law N -> (forall y, 0 < N y) -> (forall u n h, law (M u n h)) -> 0 <= p <= 1 ->
  {homo expx : x y / x <= y} -> (forall u n h, 0 <= c u n h <= 1) ->
  (forall u u' n h, overlap N (M u n h) (M u' n h) <=
     expx (dot (fun i => c u n h * dir u i) (fun i => c u' n h * dir u' i))) ->
  forall n, chi_square (present w N M p n) (absent N n) <=
    mean w (fun u => mean w (fun u' => (1 + p ^+ 2 * (expx (Num.max (dot (dir u) (dir u')) 0) - 1)) ^+ n)) - 1.
Proof.
move=> lw lN N0 lM p01 grows c01 shift; apply: reacting_second_moment => // u u' n h.
apply: le_trans (shift u u' n h) _; rewrite grows //; have [c0 c1] := andP (c01 u n h); have [c0' c1'] := andP (c01 u' n h).
have -> : dot (fun i => c u n h * dir u i) (fun i => c u' n h * dir u' i) = c u n h * c u' n h * dot (dir u) (dir u').
  by rewrite /dot big_distrr; apply: eq_bigr => i _; rewrite mulrACA.
rewrite le_maxr; have [k0|k0] := leP 0 (dot (dir u) (dir u')).
  by rewrite ler_pimull // mulr_ile1.
by rewrite mulr_ge0_le0 ?orbT // ?mulr_ge0 // ltW.
Qed.

(* A linear head: features times any vector v of length at most 1. K(u, u') = |<u, u'>|. *)
Corollary linear_head (R : realFieldType) (U Y I J : finType) (w : U -> R) (N : Y -> R)
    (M : U -> forall n, run Y n -> Y -> R) (p : R) (expx : R -> R) (dir : U -> I -> R)
    (v : U -> forall n, run Y n -> J -> R) :
  law w -> law N -> (forall y, 0 < N y) -> (forall u n h, law (M u n h)) -> 0 <= p <= 1 ->
  {homo expx : x y / x <= y} -> (forall u n h, dot (v u n h) (v u n h) <= 1) ->
  (forall u u' n h, overlap N (M u n h) (M u' n h) <=
     expx (dot (fun ij => dir u ij.1 * v u n h ij.2) (fun ij => dir u' ij.1 * v u' n h ij.2))) ->
  forall n, chi_square (present w N M p n) (absent N n) <=
    mean w (fun u => mean w (fun u' => (1 + p ^+ 2 * (expx `|dot (dir u) (dir u')| - 1)) ^+ n)) - 1.
Proof.
move=> lw lN N0 lM p01 grows v1 shift; apply: reacting_second_moment => // u u' n h.
apply: le_trans (shift u u' n h) _; rewrite grows //.
have -> : dot (fun ij => dir u ij.1 * v u n h ij.2) (fun ij => dir u' ij.1 * v u' n h ij.2) =
    dot (dir u) (dir u') * dot (v u n h) (v u' n h).
  rewrite /dot (sum_then (fun i j => dir u i * v u n h j * (dir u' i * v u' n h j))) big_distrl; apply: eq_bigr => i _.
  by rewrite big_distrr; apply: eq_bigr => j _; rewrite mulrACA.
apply: le_trans (ler_norm _) _; rewrite normrM ler_pimulr //.
rewrite -(@ler_pexpn2r _ 2) ?nnegrE ?ler01 // expr1n -normrX ger0_norm ?sqr_ge0 //.
apply: le_trans (dot_cauchy_schwarz _ _) _.
by rewrite mulr_ile1 // dot_square_ge0.
Qed.

(* A test phi has the false positive rate mean P0 phi and the power mean P1 phi. *)
Theorem chi_square_bounds_tests (R : realFieldType) (Y : finType) (P0 P1 phi : Y -> R) :
  (forall y, 0 < P0 y) -> law P0 -> law P1 -> (forall y, 0 <= phi y <= 1) ->
  (mean P1 phi - mean P0 phi) ^+ 2 <= chi_square P1 P0 * (mean P0 phi * (1 - mean P0 phi)).
Proof.
move=> P0_gt0 [P0_ge0 sum0] [_ sum1] phi01; set a := mean P0 phi.
have ne y : P0 y != 0 by rewrite gt_eqF.
have -> : mean P1 phi - a = mean P0 (fun y => (P1 y / P0 y - 1) * (phi y - a)).
  rewrite {2}/mean (eq_bigr (fun y => P1 y * phi y - P0 y * phi y - (P1 y - P0 y) * a)).
    by rewrite !sumrB -big_distrl sumrB /= sum0 sum1 subrr mul0r subr0.
  by move=> y _; rewrite mulrA mulrBr mulr1 [P0 y * _]mulrC divfK // mulrBr mulrBl.
apply: le_trans (cauchy_schwarz _ _ P0_ge0) _.
have <- : mean P0 (fun y => (P1 y / P0 y - 1) ^+ 2) = chi_square P1 P0.
  rewrite /mean (eq_bigr (fun y => P1 y * P1 y / P0 y - (P1 y *+ 2 - P0 y))).
    by rewrite sumrB sumrB sumrMnl sum0 sum1 mulr2n addrK.
  by move=> y _; rewrite ratio_square ?divff.
rewrite ler_wpmul2l //; first by apply: sumr_ge0 => y _; rewrite mulr_ge0 ?sqr_ge0.
apply: (@le_trans _ _ (\sum_y (P0 y * phi y + (P0 y * a ^+ 2 - P0 y * phi y * a *+ 2)))).
  apply: ler_sum => y _; case/andP: (phi01 y) => f0 f1.
  have -> : P0 y * (phi y - a) ^+ 2 = P0 y * phi y ^+ 2 + (P0 y * a ^+ 2 - P0 y * phi y * a *+ 2).
    by rewrite moved_square mulrDr mulrBr mulrnAr [P0 y * (phi y * a)]mulrA.
  by rewrite ler_add2r ler_wpmul2l // expr2 ler_pimull.
by rewrite big_split sumrB sumrMnl -!big_distrl /= sum0 mul1r variance.
Qed.
