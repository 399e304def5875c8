"""Every paper once, version pinned, and every theorem that a number may stand on.

Docstrings, command output and certificates cite the keys of ``THEOREMS``; a key that is not here
cannot be cited (a test checks).
"""

from __future__ import annotations

from dataclasses import dataclass

from reticent.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Paper:
    """A publication or a page of this project's documentation."""

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
        "Kaissis, Knolle, Jungmann, Ziller, Usynin, Rueckert",
        "A unified interpretation of the Gaussian mechanism through GLRT adversaries",
        2022,
        "arXiv 2210.13028",
    ),
    Paper(
        "KAISSIS2023",
        "Kaissis, Ziller, Kolek, Riess, Rueckert",
        "Optimal privacy guarantees for a relaxed threat model",
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
    Paper("RETICENT", "reticent", "Derivations in the documentation of this project (docs/)", 2026, "this release"),
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
        "RETICENT:replace-dominance",
        "The antipodal subsampled pair dominates under replacement, for every threshold.",
        "Poisson sampling; contributions of norm at most 1.",
    ),
    Theorem(
        "RETICENT:composition-enclosure",
        "Composed curves are enclosed by certified numerical bounds.",
        "Double precision; error terms of docs/composition.md.",
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
            raise ParameterError("theorem", key, "a key of reticent.references.THEOREMS")
    return keys
