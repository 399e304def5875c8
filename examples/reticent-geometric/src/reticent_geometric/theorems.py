"""What the numbers of this package stand on: each theorem once, with a key that certificates cite."""

from reticent.kernel.proofs.references import Paper, Theorem, add_paper

GEOMETRIC = "GHOSH2012:Definition 2.1"
THINNED = "GEOMETRIC:unseen-releases"

add_paper(
    Paper("GHOSH2012", "Ghosh, Roughgarden, Sundararajan", "Universally utility-maximizing privacy mechanisms", 2012,
          "SIAM J. Comput. 41(6)"),
    Theorem(GEOMETRIC, "A count with two-sided geometric noise: the likelihood ratio of two counts, point by point.",
            "One record changes the count by at most the stated sensitivity."),
)  # fmt: skip
add_paper(
    Paper("GEOMETRIC", "the authors of reticent-geometric", "examples/reticent-geometric", 2026, "1.0"),
    Theorem(THINNED, "Releases that do not depend on earlier ones are independent: those nobody saw say nothing.",
            "What is released in each step was fixed before the first; releases are independent."),
)  # fmt: skip
