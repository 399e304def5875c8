"""Every paper once, version pinned, and every theorem that a number may stand on.

Docstrings, command output and certificates cite the keys of ``THEOREMS``; a key that is not here
cannot be cited (a test checks). What papers print and does not hold is in ``ERRATA``.
"""

from __future__ import annotations

from dataclasses import dataclass

from reticent.errors import ParameterError
from reticent.proofs.errata import ERRATA as ERRATA


@dataclass(frozen=True, slots=True)
class Paper:
    """A publication or a page of this project's documentation.

    Attributes:
        key: what theorems and errata cite, such as ``DONG2022``.
        authors: family names.
        title: as published.
        year: of the version.
        version: the one whose numbering is cited.
    """

    key: str
    authors: str
    title: str
    year: int
    version: str


@dataclass(frozen=True, slots=True)
class Theorem:
    """A statement that numbers stand on.

    Attributes:
        key: ``PAPER:place``.
        says: the statement in one sentence.
        conditions: under which conditions it holds, in one sentence.
        holds: False for formulas that are published but do not hold; only ``published`` may cite them.
    """

    key: str
    says: str
    conditions: str
    holds: bool = True


_PAPERS = (
    Paper("DONG2022", "Dong, Roth, Su", "Gaussian differential privacy", 2022, "JRSS-B 84(1); arXiv 1905.02383v3"),
    Paper(
        "ZHU2022",
        "Zhu, Dong, Wang",
        "Optimal accounting of differential privacy via characteristic function",
        2022,
        "AISTATS 2022; arXiv 2106.08567v3",
    ),
    Paper("BALLE2018", "Balle, Barthe, Gaboardi", "Privacy amplification by subsampling", 2018, "NeurIPS 2018"),
    Paper(
        "KAISSIS2022",
        "Kaissis, Ziller, Kolek Martinez de Azagra, Rueckert",
        "Generalised likelihood ratio testing adversaries through the differential privacy lens",
        2022,
        "arXiv 2210.13028",
    ),
    Paper(
        "KAISSIS2023",
        "Kaissis, Ziller, Kolek, Riess, Rueckert",
        "Optimal privacy guarantees for a relaxed threat model: addressing sub-optimal adversaries in "
        "differentially private machine learning",
        2023,
        "NeurIPS 2023",
    ),
    Paper(
        "CHERUBIN2024",
        "Cherubin, Koepf, Paverd, Tople, Wutschitz, Zanella-Beguelin",
        "Closed-form bounds for DP-SGD against record-level inference attacks",
        2024,
        "USENIX Security 2024; arXiv 2402.14397",
    ),
    Paper(
        "LEEMANN2023",
        "Leemann, Pawelczyk, Kasneci",
        "Gaussian membership inference privacy",
        2023,
        "NeurIPS 2023; arXiv 2306.07273",
    ),
    Paper(
        "STEINKE2023",
        "Steinke, Nasr, Jagielski",
        "Privacy auditing with one (1) training run",
        2023,
        "NeurIPS 2023; arXiv 2305.08846",
    ),
    Paper(
        "MAHLOUJIFAR2024",
        "Mahloujifar, Melis, Chaudhuri",
        "Auditing f-differential privacy in one run",
        2024,
        "arXiv 2410.22235",
    ),
    Paper(
        "MASSART1990",
        "Massart",
        "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality",
        1990,
        "Annals of Probability 18(3)",
    ),
    Paper(
        "WARNER1965",
        "Warner",
        "Randomized response: a survey technique for eliminating evasive answer bias",
        1965,
        "Journal of the American Statistical Association 60(309)",
    ),
    Paper("RETICENT", "reticent", "Derivations in the documentation of this project (docs/)", 2026, "this release"),
    Paper("MILGROM2002", "Milgrom, Segal", "Envelope theorems for arbitrary choice sets", 2002, "Econometrica 70(2)"),
    Paper(
        "KAHANE1985",
        "Kahane",
        "Sur le chaos multiplicatif",
        1985,
        "Annales des sciences mathematiques du Quebec 9(2)",
    ),
    Paper(
        "GANESH2024",
        "Ganesh",
        "Tight group-level DP guarantees for DP-SGD with sampling via mixture of Gaussians mechanisms",
        2024,
        "arXiv 2401.10294v2",
    ),
    Paper(
        "DENISOV2022",
        "Denisov, McMahan, Rush, Smith, Thakurta",
        "Improved differential privacy for SGD via optimal private linear operators on adaptive streams",
        2022,
        "NeurIPS 2022; arXiv 2202.08312",
    ),
    Paper(
        "CHOQUETTE2023",
        "Choquette-Choo, McMahan, Rush, Thakurta",
        "Multi-epoch matrix factorization mechanisms for private machine learning",
        2023,
        "ICML 2023; arXiv 2211.06530",
    ),
    Paper(
        "CHOQUETTE2023B",
        "Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta, Xu",
        "(Amplified) banded matrix factorization: a unified approach to private training",
        2023,
        "NeurIPS 2023; arXiv 2306.08153",
    ),
    Paper(
        "KALININ2024",
        "Kalinin, Lampert",
        "Banded square root matrix factorization for differentially private model training",
        2024,
        "NeurIPS 2024; arXiv 2405.13763",
    ),
    Paper("NELSON1973", "Nelson", "The free Markoff field", 1973, "Journal of Functional Analysis 12(2)"),
    Paper("EHRHARD1983", "Ehrhard", "Symétrisation dans l'espace de Gauss", 1983, "Mathematica Scandinavica 53"),
)

_THEOREMS = (
    Theorem("DONG2022:Definition 2.3", "The Gaussian trade-off curve G_mu.", "Gaussian noise, known shift."),
    Theorem(
        "DONG2022:Theorem 3.2",
        "Composition of trade-off curves is the curve of the product experiment.",
        "Adaptive composition; independent noise.",
    ),
    Theorem(
        "ZHU2022:Proposition 30",
        "The subsampled Gaussian pair dominates under add/remove.",
        "Poisson sampling; contributions of norm at most 1.",
    ),
    Theorem(
        "ZHU2022:Theorem 11",
        "A dominating pair, mixed with the sampling rate, dominates the sampled release under add/remove.",
        "Poisson sampling.",
    ),
    Theorem(
        "DONG2022:Lemma A.6",
        "The trade-off curve of the Laplace mechanism.",
        "Scalar release, known shift.",
    ),
    Theorem(
        "RETICENT:flipped-answer",
        "An answer flipped with probability f is Bernoulli(f) against Bernoulli(1 - f); docs/extending.md.",
        "One record changes one yes-or-no answer; flips are independent of each other and of the data.",
    ),
    Theorem(
        "DONG2022:Theorem 4.2",
        "Sampling without replacement turns a curve f into the symmetrised C_p(f).",
        "Fixed-size uniform batches; the data keep their size (replacement, zero-out).",
    ),
    Theorem(
        "RETICENT:fixed-size-dominance",
        "N(0) against a mixture of N(0) and N(2) dominates a step under add/remove, in this order; docs/sampling.md.",
        "Fixed-size uniform batches of one size; rate with the target counted; contributions of norm at most 1.",
    ),
    Theorem(
        "RETICENT:shuffled-epochs",
        "Given the permutation, one noisy sum of each started epoch contains the record: as many releases of all data; "
        "docs/sampling.md.",
        "A record is in at most one batch of each pass; batch boundaries do not depend on it.",
    ),
    Theorem(
        "RETICENT:all-rates-mu",
        "mu over every error rate: sampling and unknown directions do not lower it; docs/mu.md.",
        "Gaussian noise; Laplace releases by their bounded likelihood ratio.",
    ),
    Theorem(
        "KAISSIS2022:Theorem 1",
        "The GLRT for a shift of known length and unknown direction rejects for a large norm.",
        "Gaussian noise; the result without the target is known.",
    ),
    Theorem(
        "KAISSIS2022:Theorem 2",
        "Releases along one common unknown direction compose by adding noncentralities.",
        "The same direction in all releases, lengths that do not depend on it; weights sensitivity over variance.",
    ),
    Theorem(
        "KAISSIS2023:Theorem 1",
        "The relaxed curve of the scalar Laplace mechanism and its inverse.",
        "Scalar release, unknown sign.",
    ),
    Theorem(
        "CHERUBIN2024:Section 2",
        "Bayes security is one minus the total variation of the two worst secrets.",
        "Any prior; two secrets attain the minimum.",
    ),
    Theorem(
        "CHERUBIN2024:Corollary 7",
        "erfc(p sqrt(T)/(sqrt(2) sigma)) as a bound on Bayes security.",
        "Does not hold without its error term, which is vacuous in practice.",
        holds=False,
    ),
    Theorem(
        "CHERUBIN2024:Corollary 10",
        "erfc(p ||R|| / (2 sqrt(2) sigma C)) as a bound on Bayes security against attribute inference.",
        "Does not hold: batch maxima with the factor p, and the sampling mask.",
        holds=False,
    ),
    Theorem(
        "RETICENT:attribute-affinity",
        "Each step has Hellinger affinity at least 1 - p^2 F / (8 (1 - p)); affinities multiply; docs/attribute.md.",
        "Poisson sampling; F predictable from the released steps and the rest of the record.",
    ),
    Theorem(
        "RETICENT:attribute-mask",
        "Revealing the sampling leaves a public mixture of Gaussian curves; docs/attribute.md.",
        "Sampling independent of the field; a constant change, or changes fixed in advance.",
    ),
    Theorem(
        "RETICENT:attribute-clt",
        "mu^2 = sum p^2 F is the Gaussian limit, shared component included; docs/attribute.md.",
        "p to 0 with p sqrt(T) fixed; an estimate otherwise.",
    ),
    Theorem(
        "RETICENT:relaxed-meaning",
        "The best average power over a uniform direction is the best that a test can guarantee over all directions, by "
        "invariance (Hunt and Stein); docs/curves.md has the proof.",
        "Average power over a uniform direction; not the power against a record whose direction can be guessed.",
    ),
    Theorem(
        "RETICENT:common-sign",
        "The Bayes test for one unknown sign shared by all steps, composed in two dimensions; docs/relaxed-dpsgd.md.",
        "Poisson sampling; add/remove or zero-out; scalar (safe for higher dimension); a length that does not depend "
        "on the sign.",
    ),
    Theorem(
        "RETICENT:public-coin",
        "With a public coin delta is the weighted mean of the deltas at every epsilon.",
        "Type drawn once, independent of the data, known to the attacker.",
    ),
    Theorem(
        "RETICENT:rho-form",
        "erfc(sqrt(-T ln rho)) approximates Bayes security; docs/closed-forms.md.",
        "Safe on every point tested for p <= 1/2 under replacement; not a theorem.",
    ),
    Theorem(
        "RETICENT:clt",
        "The Gaussian limit of the composed likelihood ratio; docs/closed-forms.md.",
        "p to 0 with p sqrt(T) fixed; an estimate otherwise.",
    ),
    Theorem(
        "RETICENT:hellinger-bracket",
        "1 - rho^T <= advantage <= sqrt(1 - rho^2T); docs/closed-forms.md.",
        "rho the Hellinger affinity of the dominating pair of one step.",
    ),
    Theorem(
        "RETICENT:replace-dominance",
        "The antipodal subsampled pair dominates under replacement, for every threshold.",
        "Poisson sampling; contributions of norm at most 1.",
    ),
    Theorem(
        "LEEMANN2023:Definition 4.1",
        "Stochastic composition: one of several experiments, drawn with the target; equal slopes are optimal.",
        "The attacker sees which one was drawn.",
    ),
    Theorem(
        "LEEMANN2023:Theorem 4.2",
        "f-DP implies f-membership inference privacy with the same curve.",
        "The curve of f-DP must be that of replacement, or of the relation stated.",
    ),
    Theorem(
        "LEEMANN2023:Theorem 5.1",
        "The trade-off curve of one averaged gradient with known mean, covariance and susceptibility K.",
        "Gaussian mean (CLT); noise none or proportional to the covariance; H0 is the non-member.",
    ),
    Theorem(
        "LEEMANN2023:Corollary 5.1",
        "The Gaussian limit mu_step of the one-step curve, and its composition by the paper.",
        "An approximation that errs to either side; K = d is a typical record, not the worst.",
        holds=False,
    ),
    Theorem(
        "LEEMANN2023:Lemma 5.1",
        "Subsampled composition of membership privacy, Eq. (10).",
        "Does not hold over re-used data, nor as a bound for finitely many steps.",
        holds=False,
    ),
    Theorem(
        "RETICENT:harmonic-rule",
        "1/mu^2 = n/K + 1/mu_DP^2 for one step over fresh records; docs/membership-game.md.",
        "Gaussian sum over the batch (CLT), leading order in n; a bound on mu given K, an estimate as a whole.",
    ),
    Theorem(
        "RETICENT:distribution-free",
        "delta at most the concave envelope of v -> delta_sqrt(v) at the mean of mu^2; docs/membership-game.md.",
        "Each record has a Gaussian curve; only the mean of mu^2 over records is known.",
    ),
    Theorem(
        "RETICENT:audit-thresholds",
        "An exact test of both error counts at a threshold bounds epsilon, mu and advantage from below.",
        "Independent scores; thresholds that do not depend on the counted scores; docs/auditing.md.",
    ),
    Theorem(
        "RETICENT:audit-ranks",
        "Misses above a fixed rank of the non-members give a valid p-value for any claimed curve.",
        "Independent scores, ties allowed; the rank is fixed in advance; docs/auditing.md.",
    ),
    Theorem(
        "RETICENT:audit-bands",
        "Empirical error rates lie within Massart's radius of the true ones at every threshold at once.",
        "Independent, identically distributed scores on each side; docs/auditing.md.",
    ),
    Theorem(
        "RETICENT:audit-auc",
        "A Chernoff bound for the two-sample AUC with the smaller sample as its effective size.",
        "Independent, identically distributed scores on each side; docs/auditing.md.",
    ),
    Theorem(
        "RETICENT:audit-one-run-binomial",
        "Correct guesses in one run are dominated by a binomial, up to a term in delta.",
        "(epsilon, delta)-DP in both directions; fair inclusion coins; guesses blind to them; docs/auditing.md.",
    ),
    Theorem(
        "RETICENT:audit-one-run-fdp",
        "A recursion bounds the probability of many correct guesses in one run of an f-DP release.",
        "f-DP in both directions; fair inclusion coins; a fixed number of guesses; docs/auditing.md.",
    ),
    Theorem(
        "RETICENT:composition-enclosure",
        "Composed curves are enclosed by certified numerical bounds.",
        "Double precision; error terms of docs/composition.md.",
    ),
    Theorem(
        "RETICENT:second-moment",
        "Over a common uniform direction in d dimensions chi-square is the mean of 0F1(; d/2; n^2/(4 s^4)) - 1 over "
        "n ~ Binomial(T, p^2), and it bounds every test; docs/relaxed-dimension.md.",
        "Poisson sampling; add/remove or zero-out; a direction that is uniform in d dimensions for the attacker and "
        "independent of noise and draws; a length that does not depend on it.",
    ),
    Theorem(
        "RETICENT:hypercontractive",
        "Central moments of order q of the likelihood ratio are at most chi-square at noise s / sqrt(q - 1), to the "
        "power q/2 (NELSON1973); docs/relaxed-dimension.md.",
        "As RETICENT:second-moment; q >= 2.",
    ),
    Theorem(
        "RETICENT:reacting-second-moment",
        "Chi-square is at most E (1 + p^2 (e^(K(u, u') / s^2) - 1))^T - 1 over two hidden directions, whatever the "
        "gradients react to; docs/relaxed-reacting.md.",
        "Poisson sampling; add/remove or zero-out; <g(u), g(u')> <= K(u, u') for all releases: one direction, any "
        "length along it and never against it, or features times any vector; features that are the same in every step; "
        "a direction that is uniform in d dimensions for the attacker and independent of noise and draws (of several "
        "records: the family of directions is).",
    ),
    Theorem(
        "RETICENT:reacting-information",
        "The divergence of present from absent is at most the sum over steps of what one shows to somebody who knows "
        "as much of the hidden direction as the steps before can tell; docs/relaxed-reacting.md.",
        "As RETICENT:reacting-second-moment; of several records: directions that stay in all steps.",
    ),
    Theorem(
        "RETICENT:one-normal",
        "The likelihood ratio of a mixture of Gaussian shifts is distributed as a convex function of one normal "
        "variable (EHRHARD1983); with given moments the worst is flat, then straight; docs/relaxed-dimension.md.",
        "As RETICENT:second-moment: gradients that react to the weights break it.",
    ),
    Theorem(
        "RETICENT:cut-moments",
        "Chi-square of what is left where an attack would already have succeeded, and the probability of what is cut, "
        "bound every test; docs/relaxed-dimension.md, section 5.",
        "As RETICENT:second-moment.",
    ),
    Theorem(
        "RETICENT:norms-and-direction",
        "By way of a fresh direction in every step: delta(s + t) <= e^t delta_norms(s) + delta_direction(t); "
        "docs/relaxed-dimension.md, section 6.",
        "As RETICENT:second-moment.",
    ),
    Theorem(
        "RETICENT:told-mask",
        "An attacker who is told the sampling mask faces a public mixture of relaxed Gaussian curves over "
        "K ~ Binomial(T, p); docs/relaxed-dimension.md.",
        "As RETICENT:second-moment.",
    ),
    Theorem(
        "RETICENT:whole-user-dominance",
        "Binomial mixtures of Gaussians dominate a step for all records of one person together, by Kahane's inequality "
        "(KAHANE1985; the pair of add/remove is that of GANESH2024); docs/whole-users.md.",
        "Poisson sampling, a coin per record (shuffled epochs: one release of shift K each); at most K records per "
        "person; contributions of norm at most 1.",
    ),
    Theorem(
        "RETICENT:whole-user-sign",
        "The common-sign curve with Binomial(K, p) records in place of one coin per step; docs/whole-users.md.",
        "As RETICENT:common-sign; all records of the person move the result in one direction, each by the "
        "full clip norm.",
    ),
    Theorem(
        "RETICENT:whole-user-directions",
        "For all records of a person chi-square is at most the mean of 0F1(; d/2; n^2/(4 s^4)) - 1 over "
        "n = sum J_t J'_t, J ~ Binomial(K, p), however the directions depend on each other; docs/relaxed-dimension.md.",
        "Poisson sampling, a coin per record; the direction of each record in each step is uniform in d dimensions for "
        "the attacker; the family of all directions is independent of coins, noise and lengths.",
    ),
    Theorem(
        "DENISOV2022:Theorem 2.1",
        "Gaussian noise with a lower triangular strategy covers contributions that are chosen after earlier releases.",
        "The strategy and the pattern of participation are fixed beforehand.",
    ),
    Theorem(
        "RETICENT:participation-sensitivity",
        "The largest norm of C x over all patterns of participation, exact or bounded by absolute values "
        "(CHOQUETTE2023, CHOQUETTE2023B, KALININ2024); docs/matrix-mechanism.md.",
        "At most k participations at least b steps apart; contributions of norm at most 1.",
    ),
    Theorem(
        "RETICENT:block-sampling",
        "A banded strategy with as many blocks as bands is a composition of sampled Gaussian steps (CHOQUETTE2023B); "
        "docs/matrix-mechanism.md.",
        "Blocks fixed beforehand; Poisson sampling within the block whose turn it is.",
    ),
    Theorem(
        "RETICENT:laplace-sign",
        "Scalar Laplace releases against one unknown sign, the same in all: enclosed on the lattice of both losses; "
        "docs/relaxed-laplace.md.",
        "Scalar sums; add/remove and zero-out, replacement without sampling; Poisson sampling.",
    ),
    Theorem(
        "RETICENT:chain",
        "Two records are told apart no better than by way of neither: f >= f_add(1 - f_remove); "
        "docs/relaxed-dimension.md.",
        "Replacement; the attacker knows the direction of neither record.",
    ),
)

PAPERS: dict[str, Paper] = {paper.key: paper for paper in _PAPERS}
THEOREMS: dict[str, Theorem] = {theorem.key: theorem for theorem in _THEOREMS}


def cite(*keys: str) -> tuple[str, ...]:
    """The keys, after checking that each is in ``THEOREMS``.

    Raises:
        ParameterError: a key is unknown.
    """
    for key in keys:
        if key not in THEOREMS:
            raise ParameterError("theorem", key, "a key of reticent.proofs.references.THEOREMS")
    return keys
