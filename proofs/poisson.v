(* title: Poisson sampling, add and remove
   keys: ZHU2022:Theorem 11, ZHU2022:Proposition 30
   says: Each record joins a batch by its own coin, the target with probability p. (P, Q) dominates the release of each
     batch S of the others, without the target (M S) and with it (M' S).
   leaves out: That N(0, s^2) and N(1, s^2) dominate a noisy sum with and without the target: Proposition 30 needs it. *)
From mathcomp Require Import all_ssreflect all_algebra.
From reticent Require Import laws composition.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Poisson.
Variable R : realFieldType.
Implicit Types Y Z I : finType.

(* The probability of the batch S, where record i joins with probability q i. *)
Definition batch I (q : I -> R) (S : {set I}) := \prod_i (if i \in S then q i else 1 - q i).

(* A release of one batch M S, averaged over batches of the other records. *)
Definition sampled I Y (q : I -> R) (M : {set I} -> Y -> R) (y : Y) := \sum_(S : {set I}) batch q S * M S y.

Lemma batch_ge0 I (q : I -> R) S : (forall i, 0 <= q i <= 1) -> 0 <= batch q S.
Proof.
by move=> q01; apply: prodr_ge0 => i _; case/andP: (q01 i) => q0 q1; case: ifP => // _; rewrite subr_ge0.
Qed.

(* One batch: with the same others, the target joins with probability p. *)
Lemma one_batch Y Z p (M M' : Y -> R) (P Q : Z -> R) :
  0 <= p <= 1 -> law M -> law M' -> law P -> law Q -> dominated M M' P Q ->
  dominated M (mixed p M M') P (mixed p P Q).
Proof.
move=> _ lM lM' lP lQ dom x _.
have E (T : finType) (C D : T -> R) : delta x C (mixed p C D) = gain p (x - (1 - p)) C D.
  by apply: eq_bigr => y _; congr (Num.max _ 0); rewrite /mixed [(x - _) * _]mulrBl opprB addrA [p * _ + _]addrC.
by rewrite !E; apply: dominated_gain.
Qed.

Lemma delta_averaged I Y (w : {set I} -> R) (M M' : {set I} -> Y -> R) x c :
  (forall S, 0 <= w S) -> (forall S, delta x (M S) (M' S) <= c) -> \sum_S w S = 1 ->
  delta x (fun y => \sum_S w S * M S y) (fun y => \sum_S w S * M' S y) <= c.
Proof.
move=> w0 le_c w1; rewrite -[leRHS]mul1r -w1 big_distrl /=.
apply: (@le_trans _ _ (\sum_S w S * delta x (M S) (M' S))); last first.
  by apply: ler_sum => S _; rewrite ler_wpmul2l.
under [leRHS]eq_bigr do rewrite big_distrr /=.
rewrite exchange_big; apply: ler_sum => y _ /=.
rewrite big_distrr /= -sumrB le_maxl; apply/andP; split; last first.
  by apply: sumr_ge0 => S _; rewrite mulr_ge0 // le_maxr lexx orbT.
by apply: ler_sum => S _; rewrite mulrCA -mulrBr ler_wpmul2l // le_maxr lexx.
Qed.

Lemma batch_sum I (q : I -> R) : \sum_(S : {set I}) batch q S = 1.
Proof.
rewrite (reindex (fun f : {ffun I -> bool} => [set i | f i])) /=; last first.
  exists (fun S : {set I} => [ffun i => i \in S]) => [f _|S _]; first by apply/ffunP=> i; rewrite ffunE inE.
  by apply/setP=> i; rewrite inE ffunE.
transitivity (\prod_(i : I) \sum_(b : bool) (if b then q i else 1 - q i)).
  by rewrite bigA_distr_bigA; apply: eq_bigr => f _; apply: eq_bigr => i _; rewrite inE.
by apply: big1 => i _; rewrite big_bool /= addrC subrK.
Qed.

Lemma sampled_law I Y (q : I -> R) (M : {set I} -> Y -> R) :
  (forall i, 0 <= q i <= 1) -> (forall S, law (M S)) -> law (sampled q M).
Proof.
move=> q01 lM; split=> [y|].
  by apply: sumr_ge0 => S _; rewrite mulr_ge0 ?batch_ge0 //; case: (lM S).
rewrite exchange_big -(batch_sum q); apply: eq_bigr => S _ /=.
by rewrite -big_distrr /=; case: (lM S) => _ ->; rewrite mulr1.
Qed.
End Poisson.

(* M S is the law of the release of the batch S of others, M' S that of the same batch and the target. *)
Theorem poisson_add_and_remove (R : realFieldType) (I Y Z : finType) (q : I -> R) (p : R)
    (M M' : {set I} -> Y -> R) (P Q : Z -> R) :
  (forall i, 0 <= q i <= 1) -> 0 <= p <= 1 -> law P -> law Q -> (forall S, law (M S) /\ law (M' S)) ->
  (forall S, dominated (M S) (M' S) P Q) ->
  let absent := sampled q M in
  let present := sampled q (fun S => mixed p (M S) (M' S)) in
  dominated absent present P (mixed p P Q) /\ dominated present absent (mixed p P Q) P.
Proof.
move=> q01 p01 lP lQ lM dom absent present.
have one S : dominated (M S) (mixed p (M S) (M' S)) P (mixed p P Q) by case: (lM S) => ? ?; exact: one_batch.
have b0 S : 0 <= batch q S by exact: batch_ge0.
split=> x x0; apply: delta_averaged (batch_sum q) => // S; first exact: one.
case: (lM S) => lS lS'; apply: dominated_exchanged => //; exact: mixed_law.
Qed.

(* n steps with batches drawn anew, where what is released of a batch may depend on all steps before. *)
Corollary poisson_run (R : realFieldType) (I Y Z : finType) (q : nat -> I -> R) (p : nat -> R)
    (M M' : forall n, run Y n -> {set I} -> Y -> R) (P Q : nat -> Z -> R) :
  (forall n i, 0 <= q n i <= 1) -> (forall n, 0 <= p n <= 1) -> (forall n, law (P n) /\ law (Q n)) ->
  (forall n h S, law (M n h S) /\ law (M' n h S)) ->
  (forall n h S, dominated (M n h S) (M' n h S) (P n) (Q n)) ->
  let absent n h := sampled (q n) (M n h) in
  let present n h := sampled (q n) (fun S => mixed (p n) (M n h S) (M' n h S)) in
  let first n (_ : run Z n) := P n in
  let second n (_ : run Z n) := mixed (p n) (P n) (Q n) in
  forall n, dominated (run_law absent n) (run_law present n) (run_law first n) (run_law second n) /\
            dominated (run_law present n) (run_law absent n) (run_law second n) (run_law first n).
Proof.
move=> q01 p01 lPQ lM dom absent present first second n.
have lmix m : law (mixed (p m) (P m) (Q m)) by case: (lPQ m) => *; exact: mixed_law.
have lA m h : law (absent m h) by apply: sampled_law => // S; case: (lM m h S).
have lB m h : law (present m h) by apply: sampled_law => // S; case: (lM m h S) => *; exact: mixed_law.
have one m h : dominated (absent m h) (present m h) (P m) (mixed (p m) (P m) (Q m)) /\
    dominated (present m h) (absent m h) (mixed (p m) (P m) (Q m)) (P m).
  by case: (lPQ m) => lP lQ; exact: poisson_add_and_remove.
split.
  apply: (composition (P := P) (Q := fun m => mixed (p m) (P m) (Q m))) => [m h|m|m h] //; last by case: (one m h).
  by split=> //; case: (lPQ m).
apply: (composition (P := fun m => mixed (p m) (P m) (Q m)) (Q := P)) => [m h|m|m h] //; last by case: (one m h).
by split=> //; case: (lPQ m).
Qed.
