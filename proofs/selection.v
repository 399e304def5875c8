(* title: The worst order of private selection
   keys: RETICENT:worst-order
   says: A run has n outcomes in the order of their scores, equally likely without the target; with it outcome i has
     probability r i.
   leaves out: That the pair is enough (Blackwell); the limit of many outcomes, with its integral; generating functions
     where nothing bounds the number of runs. For the other order of the two laws outcomes are
     equally likely with the target. *)
From mathcomp Require Import all_ssreflect all_algebra all_fingroup.
From reticent Require Import algebra laws.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Selection.
Variable R : realFieldType.
Variable n : nat.

(* A run has the outcomes 0, ..., n - 1, in the order of their scores. Without the target all are equally likely; with
   it outcome i has probability r i, and so the likelihood ratio n * r i. *)
Implicit Types (r : 'I_n -> R) (i j a b : 'I_n) (A : pred 'I_n).

(* The probability that a run shows one of the first k outcomes. *)
Definition below r (k : nat) := \sum_(j < n | (j < k)%N) r j.

(* F is the generating function of the number of runs: all of them show one of the first k outcomes with probability
   F (below r k). So the best of them shows i with this probability. *)
Definition best (F : R -> R) r i := F (below r i.+1) - F (below r i).

Definition equally_likely i := n%:R^-1 : R.

(* What F is where it has no negative coefficient: it grows on [0, 1], and so does its slope. *)
Definition grows_and_bends (F : R -> R) :=
  (forall s t, 0 <= s -> s <= t -> t <= 1 -> F s <= F t) /\
  (forall s t d, 0 <= s -> s <= t -> 0 <= d -> t + d <= 1 -> F (s + d) - F s <= F (t + d) - F t).

(* The order of the scores is an interval path: what ranks below an outcome is an interval of losses. An outcome that is
   accused (in A) has at least all losses so far, another one at most all of them. *)
Definition interval_path r A := forall i j, (i < j)%N -> if A j then r i <= r j else r j <= r i.

Definition exchanged a b r i := r (tperm a b i).

Lemma exchangedK a b r : exchanged a b (exchanged a b r) =1 r.
Proof. by move=> i; rewrite /exchanged tpermK. Qed.

Lemma below_exchanged a b r k :
  (a < b)%N -> below (exchanged a b r) k = below r k + (if (a < k <= b)%N then r b - r a else 0).
Proof.
move=> ab; have ne : b != a by rewrite neq_ltn ab orbT.
have [ka|ak] := leqP k a.
  rewrite addr0; apply: eq_bigr => j jk; congr (r _); rewrite tpermD // neq_ltn.
    by rewrite (leq_trans jk ka) orbT.
  by rewrite (leq_trans jk (leq_trans ka (ltnW ab))) orbT.
have [kb|bk] /= := leqP k b; last first.
  rewrite addr0 /below (reindex_inj (@perm_inj _ (tperm a b))) /=; apply: eq_big => j.
    by case: tpermP => [->|->|//]; rewrite ?ak ?bk.
  by rewrite /exchanged tpermK.
rewrite /below (bigD1 a) //= [in RHS](bigD1 a) //= {1}/exchanged tpermL.
rewrite [RHS]addrAC addrCA subrr addr0; congr (_ + _); apply: eq_bigr => j /andP[jk ja].
by rewrite /exchanged tpermD // eq_sym // neq_ltn (leq_trans jk kb).
Qed.

Lemma below_power r k K :
  below r k ^+ K = \sum_(t : {ffun 'I_K -> 'I_n} | [forall j, (t j < k)%N]) \prod_j r (t j).
Proof.
rewrite -{1}(card_ord K) -prodr_const (bigA_distr_big (fun j : 'I_n => (j < k)%N) (fun _ => r)).
by apply: eq_bigl => t; apply/ffun_onP/forallP.
Qed.

Lemma below_ge0 r k : (forall i, 0 <= r i) -> 0 <= below r k.
Proof. by move=> r0; apply: sumr_ge0. Qed.

Lemma below_le r k l : (forall i, 0 <= r i) -> (k <= l)%N -> below r k <= below r l.
Proof.
move=> r0 kl; rewrite /below [leRHS](bigID (fun j : 'I_n => (j < k)%N)) /=.
rewrite (eq_bigl (fun j : 'I_n => (j < l)%N && (j < k)%N)); first by rewrite ler_addl sumr_ge0.
by move=> j; case: (ltnP j k) => jk; rewrite ?andbF // (leq_trans jk kl).
Qed.

Lemma below_all r : below r n = \sum_i r i.
Proof. by apply: eq_bigl => j; rewrite ltn_ord. Qed.

Lemma below_le1 r k : law r -> below r k <= 1.
Proof.
move=> [r0 r1]; rewrite -r1; have [kn|nk] := leqP k n; first by rewrite -below_all below_le.
by rewrite le_eqVlt; apply/orP; left; apply/eqP; apply: eq_bigl => j; rewrite (ltn_trans (ltn_ord j) nk).
Qed.

Lemma best_sum F r : \sum_i best F r i = F (\sum_i r i) - F 0.
Proof.
rewrite -(below_all r).
have -> : F 0 = F (below r 0) by rewrite /below big_pred0.
by have := telescope_sumr (fun k => F (below r k)) (leq0n n); rewrite big_mkord => <-.
Qed.

Lemma exchanged_law a b r : law r -> law (exchanged a b r).
Proof.
move=> [r0 r1]; split=> [i|]; first exact: r0.
by rewrite -[RHS]r1 [RHS](reindex_inj (@perm_inj _ (tperm a b))).
Qed.

(* The greater loss moves up to a: all of what is not b gains. *)
Lemma best_exchanged F a b r i :
  grows_and_bends F -> law r -> (a < b)%N -> r a <= r b -> i != b -> best F r i <= best F (exchanged a b r) i.
Proof.
move=> [grows bends] lr ab le_r ib; have [r0 _] := lr; set d := r b - r a.
have d0 : 0 <= d by rewrite subr_ge0.
have le1 k : below (exchanged a b r) k <= 1 by apply: below_le1; exact: exchanged_law.
have E k := below_exchanged r k ab; rewrite -/d in E.
rewrite /best; have := le1 i.+1; rewrite !E ltnS [(i <= b)%N]leq_eqVlt (negbTE (_ : i != b :> nat)) //= => le_1.
case: (ltnP i b) le_1 => [ib'|_] le_1; last by rewrite !andbF !addr0.
rewrite !andbT in le_1 *; have step : below r i <= below r i.+1 by rewrite below_le.
case: (ltngtP a i) le_1 => _ le_1; last 1 first.
- by rewrite addr0 ler_add2r grows ?below_ge0 // ler_addl.
- by rewrite ler_subr_addr -addrA [- _ + _]addrC -ler_subr_addl bends ?below_ge0.
- by rewrite !addr0.
Qed.

(* The later outcome b of a pair has the loss that suits it better: the greater one, if it is accused. *)
Lemma accused_exchanged F a b r A :
  grows_and_bends F -> law r -> (a < b)%N -> (if A b then r b <= r a else r a <= r b) ->
  \sum_(i | A i) best F r i <= \sum_(i | A i) best F (exchanged a b r) i.
Proof.
move=> gF lr ab; have le_b := best_exchanged gF; case: ifPn => [Ab|Ab] le_r; last first.
  by apply: ler_sum => i Ai; apply: le_b => //; apply: contraNneq Ab => <-.
have total s : law s -> \sum_(i | A i) best F s i = F 1 - F 0 - \sum_(i | ~~ A i) best F s i.
  by move=> [_ s1]; rewrite -{1}s1 -best_sum [X in X - _](bigID A) /= addrK.
have lr' := exchanged_law a b lr; rewrite !total // ler_add2l ler_oppr opprK.
apply: ler_sum => i Ai; rewrite -[leRHS](_ : best F (exchanged a b (exchanged a b r)) i = _); last first.
  by rewrite /best /below; congr (F _ - F _); apply: eq_bigr => j _; rewrite exchangedK.
by apply: le_b => //; rewrite ?/exchanged ?tpermL ?tpermR //; apply: contraNneq Ai => ->.
Qed.

(* What exchanges raise: the later an outcome, the more its loss counts, if it is accused, and the less, if not. *)
Definition weight A i : R := if A i then i.+1%:R else - i.+1%:R.
Definition sorting r A := \sum_i weight A i * r i.

Lemma sorting_exchanged a b r A :
  (a < b)%N -> (if A b then r b < r a else r a < r b) -> sorting r A < sorting (exchanged a b r) A.
Proof.
move=> ab lt_r; have ba : b != a by rewrite neq_ltn ab orbT.
rewrite /sorting (bigD1 a) // (bigD1 b) //= [ltRHS](bigD1 a) // [in ltRHS](bigD1 b) //=.
rewrite /exchanged tpermL tpermR !addrA (eq_bigr (fun i => weight A i * r (tperm a b i))); last first.
  by move=> i /andP[ia ib]; rewrite tpermD // eq_sym.
rewrite ltr_add2r -subr_gt0.
have -> : weight A a * r b + weight A b * r a - (weight A a * r a + weight A b * r b) =
    (weight A b - weight A a) * (r a - r b) by exact: exchanged_products.
have lt_ab : a.+1%:R < b.+1%:R :> R by rewrite ltr_nat ltnS.
have pos (i : 'I_n) : 0 < i.+1%:R :> R by rewrite ltr0n.
case: ifP lt_r => Ab lt_r; rewrite /weight Ab; case: (A a).
- by rewrite mulr_gt0 // subr_gt0.
- by rewrite mulr_gt0 ?subr_gt0 // (lt_trans _ (pos b)) // oppr_lt0.
- by rewrite nmulr_rgt0 ?subr_lt0 // (lt_trans _ (pos a)) // oppr_lt0.
- by rewrite nmulr_rgt0 ?subr_lt0 // ltr_oppl opprK.
Qed.

Lemma best_order F r A :
  grows_and_bends F -> law r ->
  exists s : {perm 'I_n}, interval_path (r \o s) A /\
    \sum_(i | A i) best F r i <= \sum_(i | A i) best F (r \o s) i.
Proof.
move=> gF lr; pose gain (s : {perm 'I_n}) := \sum_(i | A i) best F (r \o s) i.
have [s1 _ max1] := @Order.TotalTheory.arg_maxP _ _ _ (1%g : {perm 'I_n}) xpredT gain isT.
have [s2 /eqP gain2 max2] :=
  @Order.TotalTheory.arg_maxP _ _ _ s1 (fun s => gain s == gain s1) (fun s => sorting (r \o s) A) (eqxx _).
have same f g i : f =1 g -> best F f i = best F g i.
  by move=> fg; rewrite /best /below; congr (F _ - F _); apply: eq_bigr.
have ls (s : {perm 'I_n}) : law (r \o s).
  case: lr => r0 r1; split=> [i|]; first exact: r0.
  by rewrite -[RHS]r1 [RHS](reindex_inj (@perm_inj _ s)).
exists s2; split; last first.
  rewrite -/(gain s2) gain2; apply: le_trans (max1 1%g isT).
  by apply: ler_sum => i _; rewrite (same (r \o (1%g : {perm 'I_n})) r) // => j; rewrite /= perm1.
move=> a b ab; pose s3 := (tperm a b * s2)%g.
have E : exchanged a b (r \o s2) =1 r \o s3 by move=> i; rewrite /exchanged /s3 /= permM.
have [//|bad] := boolP (if A b then (r \o s2) a <= (r \o s2) b else (r \o s2) b <= (r \o s2) a).
have lt_r : if A b then (r \o s2) b < (r \o s2) a else (r \o s2) a < (r \o s2) b.
  by move: bad; case: (A b); rewrite -ltNge.
have le_r : if A b then (r \o s2) b <= (r \o s2) a else (r \o s2) a <= (r \o s2) b.
  by move: lt_r; case: (A b) => /ltW.
have := accused_exchanged gF (ls s2) ab le_r.
rewrite -/(gain s2) (eq_bigr (best F (r \o s3))) => [|i _]; last exact: same.
rewrite -/(gain s3) => up; have gain3 : gain s3 == gain s1 by rewrite eq_le -{2}gain2 up andbT; exact: max1.
have := max2 _ gain3; have := sorting_exchanged ab lt_r.
by rewrite /sorting; under [X in _ < X]eq_bigr do rewrite E; move=> lt /(lt_le_trans lt); rewrite ltxx.
Qed.
End Selection.
Arguments equally_likely {R n} i.

(* Whatever the order of the scores, some order that is an interval path has at least its delta. *)
Theorem worst_order (R : realFieldType) (n : nat) (F : R -> R) (r : 'I_n -> R) (x : R) :
  grows_and_bends F -> law r ->
  exists (s : {perm 'I_n}) (A : pred 'I_n), interval_path (r \o s) A /\
    delta x (best F equally_likely) (best F r) <= delta x (best F equally_likely) (best F (r \o s)).
Proof.
move=> gF lr; pose A i := 0 <= best F r i - x * best F equally_likely i.
have [s [path le_s]] := best_order A gF lr; exists s, A; split=> //.
have -> : delta x (best F equally_likely) (best F r) =
    \sum_(i | A i) (best F r i - x * best F equally_likely i).
  rewrite [RHS]big_mkcond; apply: eq_bigr => i _; rewrite /A.
  by case: ifPn => [/max_idPl //|]; rewrite -ltNge => /ltW/max_idPr.
apply: (@le_trans _ _ (\sum_(i | A i) (best F (r \o s) i - x * best F equally_likely i))).
  by rewrite sumrB [leRHS]sumrB ler_add2r.
rewrite [leLHS]big_mkcond; apply: ler_sum => i _.
by case: ifP => _; rewrite le_maxr lexx ?orbT.
Qed.

(* What the formula of best says: of K runs, with probability k K, none scores above i, and some as i. *)
Theorem best_of_runs (R : realFieldType) (n m : nat) (k : 'I_m -> R) (r : 'I_n -> R) (i : 'I_n) :
  best (fun z => \sum_K k K * z ^+ K) r i =
  \sum_K k K * \sum_(t : {ffun 'I_K -> 'I_n} | [forall j, (t j <= i)%N] && [exists j, t j == i]) \prod_j r (t j).
Proof.
rewrite /best -sumrB; apply: eq_bigr => K _; rewrite -mulrBr; congr (_ * _); rewrite !below_power.
rewrite (bigID (fun t : {ffun 'I_K -> 'I_n} => [exists j, t j == i])) /=.
rewrite -addrA -[RHS]addr0; congr (_ + _); apply/eqP; rewrite subr_eq0; apply/eqP; apply: eq_bigl => t.
rewrite negb_exists; apply/andP/forallP => [[/forallP le_i /forallP ne_i] j|lt_i].
  by rewrite ltn_neqAle ne_i -ltnS le_i.
by split; apply/forallP => j; [by rewrite ltnW // ltnS lt_i | by apply: contraTneq (lt_i j) => ->; rewrite ltnn].
Qed.

(* What is used before any place k is an interval of losses: no loss of a later place lies between two of them. *)
Theorem interval_path_is_one (R : realFieldType) (n : nat) (r : 'I_n -> R) (A : pred 'I_n) (i i' j : 'I_n) (k : nat) :
  interval_path r A -> (i < k)%N -> (i' < k)%N -> (k <= j)%N -> ~~ (r i < r j < r i').
Proof.
move=> path ik i'k kj; have := path i j (leq_trans ik kj); have := path i' j (leq_trans i'k kj).
by case: (A j) => le1 le2; rewrite negb_and -!leNgt ?le1 ?le2 ?orbT.
Qed.

(* Every law of at most m runs has such a generating function. *)
Theorem generating_grows_and_bends (R : realFieldType) (m : nat) (k : 'I_m -> R) :
  (forall K, 0 <= k K) -> grows_and_bends (fun z => \sum_K k K * z ^+ K).
Proof.
move=> k0; split=> [s t s0 st _|s t d s0 st d0 _].
  apply: ler_sum => K _; rewrite ler_wpmul2l //.
  by apply: ler_expn2r => //; rewrite nnegrE // (le_trans s0).
rewrite -!sumrB; apply: ler_sum => K _; rewrite -!mulrBr ler_wpmul2l //.
have gap z : z + d - z = d by rewrite addrC addKr.
rewrite !subrXX !gap ler_wpmul2l //; apply: ler_sum => i _.
have t0 := le_trans s0 st.
by rewrite ler_pmul ?exprn_ge0 ?addr_ge0 // ler_expn2r ?nnegrE ?addr_ge0 // ler_add2r.
Qed.
