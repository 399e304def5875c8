"""What papers print and does not hold: each with what holds, and the test that shows it.

Code, notes and pages cite the keys of ``ERRATA``; docs/errata.md is made from this list.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Erratum:
    """One place of a paper.

    Attributes:
        key: ``PAPER:code``.
        printed: what the paper says and where, in one sentence.
        holds: what holds instead, in one sentence.
        shown_by: the test that shows it, below tests/; empty where it is shown by the argument alone.
    """

    key: str
    printed: str
    holds: str
    shown_by: str = ""


_ERRATA = (
    Erratum(
        "CHERUBIN2024:B1",
        "Corollary 7 drops the error term of Theorem 6 and calls the main term, erfc(p sqrt(T)/(sqrt(2) sigma)), a bound.",
        "The error term is above 1 in practice, and without it the main term claims up to 0.65 more Bayes security than "
        "there is.",
        "accountants/test_closed_forms.py::test_published_form_is_unsafe_as_the_errata_say",
    ),
    Erratum(
        "CHERUBIN2024:B2",
        "Proposition 4 gives the error as O(sqrt(pT)/sigma), smaller where privacy is good.",
        "That is an upper bound of the wrong order: the main term stays off by the factor sqrt(sigma^2 sinh(1/sigma^2)) "
        "in mu, however small p is.",
        "accountants/test_closed_forms.py::test_published_form_is_unsafe_as_the_errata_say",
    ),
    Erratum(
        "CHERUBIN2024:B3",
        "The example below Equation 4: p = 0.00035 sigma gives Bayes security 0.98 at T = 5000.",
        "It is 0.97834 at sigma 1 and 0.95393 at sigma 0.5.",
        "accountants/test_closed_forms.py::test_equation_4_is_reproduced_and_is_unsafe",
    ),
    Erratum(
        "CHERUBIN2024:B4",
        "Corollary 10 and Algorithm 4 take a maximum over the drawn batch and multiply by p as well.",
        "Sampling counts once: either with the factor p and every record at every step, or over drawn records without p.",
        "adversaries/test_attribute.py::test_erratum_b4_batch_maxima_count_the_sampling_twice",
    ),
    Erratum(
        "CHERUBIN2024:B5",
        "The main term of Corollary 10 depends on the distance of two gradients only.",
        "What the two gradients share shows whether the record was drawn: mu^2 is the sum of p^2 F, with F of docs/attribute.md.",
        "adversaries/test_attribute.py::test_erratum_b5_the_shared_component_shows_the_sampling",
    ),
    Erratum(
        "CHERUBIN2024:B7",
        "Section 5.3: publishing Bayes security says nothing about the attribute.",
        "The batch maximum is a function of the drawn batches, so it shows what the factor p relies on.",
    ),
    Erratum(
        "CHERUBIN2024:B8",
        "Section 5.4 calls twice the largest distance to a centre a lower bound on the diameter.",
        "It is an upper bound on the diameter, by the triangle inequality, and so a lower bound on Bayes security.",
        "training/test_recorder.py::test_approximate_modes_are_never_on_the_unsafe_side",
    ),
    Erratum(
        "CHERUBIN2024:B9",
        "Section 6.1 prints Bayes security .945 with the exact and .950 with the approximate diameter.",
        "The approximate one can only be smaller on the same run: the two numbers are exchanged.",
        "training/test_recorder.py::test_approximate_modes_are_never_on_the_unsafe_side",
    ),
    Erratum(
        "CHERUBIN2024:B11",
        "Proposition 9 bounds TPR in two cases of the prior.",
        "For every prior TPR is at most min(1, 1 + FPR - Bayes security); the printed second case does not follow.",
        "adversaries/test_attribute.py::test_erratum_b17_and_b11",
    ),
    Erratum(
        "CHERUBIN2024:B15",
        "Section 6: noise 3.51 for Adult with N = 32,561.",
        "Noise 3.5151 needs N = 26,048, 80% of the file, and 101 steps per epoch.",
        "data/test_adult.py::test_published_split_and_marginals",
    ),
    Erratum(
        "CHERUBIN2024:B16",
        "Section 6: noise 1.8 for Purchase with N = 197,324.",
        "The noise follows from all records, while the run used 347 steps per epoch of 90% of them.",
    ),
    Erratum(
        "CHERUBIN2024:B17",
        "The table for attribute inference on Adult prints TPR 16% (20%).",
        "At Bayes security .93 (.88) it is 17% (22%), and the success at two equal values is 53.5% (56%).",
        "adversaries/test_attribute.py::test_success_at_a_prior",
    ),
    Erratum(
        "CHERUBIN2024:B19",
        "Age in Adult has 73 values, 17 to 90.",
        "There are 74.",
        "data/test_adult.py::test_age_has_74_values_not_the_printed_73",
    ),
    Erratum(
        "CHERUBIN2024:B20",
        "Section 6.2 sets epsilon 0.5 beside Bayes security 0.9 for Adult.",
        "The epsilon is that of add/remove and the security that of replacement; for one relation it is .9487 or epsilon .995.",
        "adversaries/test_adversaries.py::test_relations_must_not_be_mixed",
    ),
    Erratum(
        "LEEMANN2023:G1",
        "Lemma 5.1 and Appendix D.3 compose steps over the same data without noise as if each were fresh.",
        "Without noise, eight steps over eight records identify every one; only injected noise, or fresh batches, may count.",
        "adversaries/game/test_membership_game.py::test_counterexample_to_composition_over_reused_data",
    ),
    Erratum(
        "LEEMANN2023:G2",
        "K = d is taken as a bound on the susceptibility of a record.",
        "d is its mean: about half of all records exceed it, and the exact curve is stronger at low false positive rates.",
        "adversaries/game/test_gmip_curves.py::test_typical_susceptibility_is_optimistic_at_low_rates",
    ),
    Erratum(
        "LEEMANN2023:G3",
        "Equation 10 is called a loose bound for finitely many steps.",
        "It is an approximation that errs to either side, and on the unsafe one at low false positive rates.",
        "adversaries/game/test_membership_game.py::test_eq_10_is_no_bound",
    ),
    Erratum(
        "LEEMANN2023:G5",
        "Theorem 5.1 takes K as the squared length of the target's gradient in the metric of the covariance.",
        "The gradient is measured from the mean gradient, as in Appendix E and Algorithm 1.",
        "adversaries/game/test_gmip_curves.py::test_equal_spectrum_is_theorem_51",
    ),
    Erratum(
        "LEEMANN2023:G6",
        "Table 3 and Figure 2: mu_step 1.13 and mu 2.54 before rounding.",
        "They are 1.14 and 2.55 (2.56 for Purchase).",
        "adversaries/game/test_gmip.py::test_table_3_levels",
    ),
    Erratum(
        "LEEMANN2023:G7",
        "Table 5 shows the noise that membership privacy needs.",
        "Its entries are 0 or the noise of differential privacy: the formula itself asks for 2.4 to 20 times as much.",
        "adversaries/game/test_gmip.py::test_table_5_as_printed",
    ),
    Erratum(
        "LEEMANN2023:G8",
        "CIFAR-10 needs no noise for mu of at least 0.86.",
        "0.86 is a point of the grid; the threshold of Equation 10 is 0.7866.",
        "adversaries/game/test_gmip.py::test_noise_free_level_of_cifar",
    ),
    Erratum(
        "LEEMANN2023:G9",
        "Appendix E.2 bounds every eigenvalue of the covariance by C^2.",
        "Their sum is at most C^2, which gives 1/mu^2 = n/K + 1/mu_DP^2 and makes the minimum rule unnecessary.",
        "adversaries/game/test_gmip.py::test_harmonic_noise_is_least_and_never_above_dp",
    ),
    Erratum(
        "LEEMANN2023:G11",
        "Corollary F.1 (1) has the term 4 C^2/mu_DP^2.",
        "The clip norm cancels: it is 4/mu_DP^2.",
        "adversaries/game/test_gmip.py::test_corollary_f1_reference",
    ),
    Erratum(
        "LEEMANN2023:G12",
        "The proof of F.1 finds no solution for mu^2 below 2d/(2n + 1).",
        "No positive noise is needed at or above that value; below it there is a solution.",
        "adversaries/game/test_gmip.py::test_corollary_f1_needs_no_noise_above_the_threshold",
    ),
    Erratum(
        "LEEMANN2023:G13",
        "Corollary F.1 (2): membership privacy implies differential privacy.",
        "It does not: a mean without noise of many records has a small mu and no differential privacy.",
        "adversaries/game/test_gmip.py::test_small_membership_mu_is_no_differential_privacy",
    ),
    Erratum(
        "LEEMANN2023:G14",
        "Section 3.3 and Algorithm 2 clip by max(1, C/|g|).",
        "The factor is min(1, C/|g|).",
        "attacks/test_glir.py::test_gradients_of_any_module",
    ),
    Erratum(
        "LEEMANN2023:G15",
        "Line 11 of Algorithm 1 takes the inverse of a distribution function.",
        "It is the distribution function itself: members have a small statistic.",
        "attacks/test_glir_statistics.py::test_distance_is_scaled_by_n",
    ),
    Erratum(
        "LEEMANN2023:G16",
        "Line 9 of Algorithm 1 scales the distance by n - 1.",
        "Non-members follow chi-square(d, n K) at n times the distance; with n - 1 a nominal 1% is 4.3%.",
        "attacks/test_glir_statistics.py::test_distance_is_scaled_by_n",
    ),
    Erratum(
        "LEEMANN2023:G17",
        "GLiR thresholds one p-value, or the sum of their logarithms.",
        "Equal slopes are optimal: the log likelihood ratio, summed over steps, is stronger at every false positive rate.",
        "attacks/test_glir_statistics.py::test_ratio_beats_p_values",
    ),
    Erratum(
        "LEEMANN2023:G18",
        "The inverse of the sample covariance is used for that of the covariance.",
        "It is too large by nu/(nu - d - 1) in the mean, a factor of 2 at m = 2d.",
        "attacks/test_glir_statistics.py::test_inverse_of_the_sample_covariance_is_corrected",
    ),
    Erratum(
        "LEEMANN2023:G19",
        "The central limit theorem holds for sufficiently large n.",
        "Sparse or lattice-valued gradients break it: with Bernoulli(.001) gradients the attack finds every member at FPR .095.",
        "adversaries/game/test_membership_game.py::test_sparse_gradients_break_the_central_limit",
    ),
    Erratum(
        "LEEMANN2023:G20",
        "Appendix E lets the hypothesis that is rejected be membership.",
        "The curve of the main text has the non-member as its null hypothesis.",
        "adversaries/game/test_gmip_curves.py::test_equal_spectrum_is_theorem_51",
    ),
    Erratum(
        "KAISSIS2022:G1",
        "Figure 1 gives epsilon .95 and .37 at shift over noise 0.5.",
        "They belong to 0.3; at 0.5 they are 1.698 and 1.028.",
        "adversaries/test_adversaries.py::test_relaxed_gaussian_reproduces_the_confirmed_figures_of_the_papers",
    ),
    Erratum(
        "KAISSIS2022:G2",
        "Figure 4 shows epsilon at delta 0.1 for d from 1 to 100.",
        "At that delta epsilon is 0 for every d of at least 7.",
        "adversaries/test_adversaries.py::test_figure_four_of_the_glrt_paper_has_no_epsilon_to_plot",
    ),
    Erratum(
        "KAISSIS2022:G3",
        "Figure 9 gives epsilon 3.63 for the worst case.",
        "It is 3.637.",
        "adversaries/test_adversaries.py::test_worst_case_figures_printed_wrongly",
    ),
    Erratum(
        "KAISSIS2022:G4",
        "Figure 10 gives epsilon 6.01 for the worst case.",
        "It is 6.084.",
        "adversaries/test_adversaries.py::test_worst_case_figures_printed_wrongly",
    ),
    Erratum(
        "KAISSIS2022:G5",
        "Equations 35 and 45 have d in the denominator of the shift.",
        "It is sqrt(d); as printed the curve of Figure 5 is off by .148.",
        "curves/test_errata.py::test_g5_equation_35_needs_sqrt_d",
    ),
    Erratum(
        "KAISSIS2022:G7",
        "Theorem 3 is stated for N to infinity.",
        "The limit is in the dimension, with lambda of order sqrt(d); the number of releases plays no part.",
        "curves/test_errata.py::test_g7_the_limit_is_in_d_not_in_the_number_of_releases",
    ),
    Erratum(
        "KAISSIS2022:G8",
        "Equations 36 and 37 are used as a guarantee.",
        "The true power exceeds them in the tail: 6.65e-5 instead of 5.75e-5 at alpha 1e-5 in Figure 5.",
        "curves/test_errata.py::test_g8_equation_36_is_optimistic_in_the_tail",
    ),
    Erratum(
        "KAISSIS2022:G16",
        "Sections 4.2 and 4.6 compose the curve of each release by Fourier methods.",
        "That attacker forgets the direction between releases; for one common direction delta at the parameters of Figure 7 "
        "is 3.2e-3, not 1.35e-7.",
        "adversaries/relaxed/test_norm_only.py::test_published_pipeline_is_below_a_provable_floor",
    ),
    Erratum(
        "KAISSIS2023:R1",
        "Lemma 8 composes two releases by the unweighted mean.",
        "Weights sensitivity over variance are optimal and add noncentralities; as printed, a second release can seem to protect.",
        "curves/test_errata.py::test_r1_lemma_8_lets_a_second_release_improve_privacy",
    ),
    Erratum(
        "KAISSIS2023:R2",
        "Definition 3 takes the strongest test that can be computed without the target.",
        "The one-sided test can be computed, so the infimum is the worst case; the two-sided curve needs an unknown direction.",
        "attacks/test_magnitude.py::test_a_guessed_direction_beats_the_relaxed_curve_but_not_the_worst_case",
    ),
    Erratum(
        "KAISSIS2023:R3",
        "Not knowing the target weakens the test.",
        "Not if the direction is known: counts and non-negative features show the sign.",
        "attacks/test_magnitude.py::test_a_guessed_direction_beats_the_relaxed_curve_but_not_the_worst_case",
    ),
    Erratum(
        "KAISSIS2023:R4",
        "Offline membership inference has the capabilities of the relaxed attacker.",
        "Offline LiRA is one-sided, so the two-sided bound does not cover it; the worst case does.",
        "attacks/test_shadow_scores.py::test_offline_lira_is_one_sided_and_beats_the_two_sided_bound",
    ),
    Erratum(
        "KAISSIS2023:R6",
        "The curve of both directions is symmetrised by a recipe that takes the maximum for Laplace noise.",
        "The guarantee is the convex envelope of the minimum; the maximum overstates beta by up to .134.",
        "curves/test_errata.py::test_r6_the_maximum_branch_overstates_beta",
    ),
    Erratum(
        "KAISSIS2023:R7",
        "One segment of slope -1 joins the two directions.",
        "For sampled Laplace noise neither direction dominates, and there are two segments.",
        "curves/test_errata.py::test_r7_neither_direction_dominates_for_subsampled_laplace",
    ),
    Erratum(
        "KAISSIS2023:R8",
        "The second dominating pair of the sampled Gaussian is used under |y|.",
        "It is centred at the other data set; the inverse of the first curve is right, .9433 instead of .9338.",
        "curves/test_errata.py::test_r8_the_second_dominating_pair_is_not_the_inverse",
    ),
    Erratum(
        "KAISSIS2023:R10",
        "Reconstruction under the relaxed model succeeds with at most 1 - J(kappa).",
        "A reconstruction is a one-sided test: the sign of the release succeeds with .8413 where the formula says .7067.",
        "adversaries/test_adversaries.py::test_reconstruction_needs_the_worst_case_curve",
    ),
    Erratum(
        "KAISSIS2023:R11",
        "Other mechanisms compose by adding up test statistics.",
        "As for the GLRT paper, this forgets the common direction: noise 2.10 is proposed where 5.99 is needed.",
        "adversaries/relaxed/test_norm_only.py::test_without_sampling_it_contradicts_the_common_direction",
    ),
    Erratum(
        "KAISSIS2023:R12",
        "Matching (epsilon, delta) and matching one pair of error rates are called equivalent.",
        "They give different noise, and to match every point takes the noise of the worst case.",
    ),
    Erratum(
        "KAISSIS2023:R13",
        "Corollary 1 has the same function in both terms.",
        "It is Phi(z - mu) - Q(z + mu); as printed the value is negative.",
        "curves/test_errata.py::test_r13_corollary_one_has_an_upper_tail",
    ),
    Erratum(
        "KAISSIS2023:R14",
        "Theorem 1 is used for vectors.",
        "It holds for scalar releases, and lowers no pure epsilon.",
        "curves/test_errata.py::test_r14_no_gain_in_pure_epsilon",
    ),
)

ERRATA: dict[str, Erratum] = {erratum.key: erratum for erratum in _ERRATA}
