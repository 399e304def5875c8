"""What may be asked of a curve: each risk number with its places, by the name that policies, targets and tables use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from reticent.kernel import checks
from reticent.kernel.curves import from_advantage
from reticent.kernel.errors import ParameterError
from reticent.kernel.proofs import Condition, Status
from reticent.kernel.risk import measures


@dataclass(frozen=True, slots=True)
class Questions:
    """Where the curves are read.

    Attributes:
        fprs: false positive rates for TPR, in [0, 1].
        deltas: deltas for epsilon, in (0, 1].
        epsilons: epsilons for delta, finite and >= 0.
        priors: prior probabilities for a right guess, in (0, 1).
        secret_bits: min-entropies of secrets in one person's records, in bits, > 0.
        guesses: how many guesses of such a secret, each a whole number.
        baselines: best guesses of what is to be recovered, without the model, in (0, 1).
    """

    fprs: tuple[float, ...] = (0.001, 0.01)
    deltas: tuple[float, ...] = (1e-5,)
    epsilons: tuple[float, ...] = (1.0,)
    priors: tuple[float, ...] = (0.5,)
    secret_bits: tuple[float, ...] = ()
    guesses: tuple[float, ...] = (1,)
    baselines: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for fpr in self.fprs:
            checks.fraction(fpr=fpr)
        for delta in self.deltas:
            checks.rate(delta=delta)
        for epsilon in self.epsilons:
            checks.non_negative(epsilon=epsilon)
        for prior in self.priors:
            checks.open_fraction(prior=prior)
        for baseline in self.baselines:
            checks.open_fraction(baseline=baseline)
        for bits in self.secret_bits:
            measures.blind_guess(bits)
        for guesses in self.guesses:
            measures.blind_guess(1.0, guesses)
        if not self.secret_bits and self.guesses != (1,):
            raise ParameterError("guesses", self.guesses, "given with secret_bits", shown=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """A risk number as reports state it.

    Attributes:
        field: of a record of ``reticent.adversaries.report``.
        heading: of its column.
        read: takes it off a curve.
        most: the largest value that it can have; the smallest is 0.
        places: what it is read at, such as ``prior``, each with the field of ``Questions`` that asks for it.
        theorems: keys of what it follows from, besides those of the curve.
        needs: keys of conditions, besides those of the curve.
        one_sided: it is read only off curves that bound every test; see ``Adversary.every_test``.
    """

    field: str
    heading: str
    read: Callable[..., float]
    most: float = 1.0
    places: tuple[tuple[str, str], ...] = ()
    theorems: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    one_sided: bool = False

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What it needs besides the curve, as the person who asks declares it."""
        return tuple(Condition(key, Status.DECLARED) for key in self.needs)

    def answers(self, every_test: bool) -> bool:
        """Whether it may be read off a curve that bounds every test, or not every test."""
        return every_test or not self.one_sided

    def blind(self, *places: float) -> float:
        """The number where the release tells nothing."""
        return self.read(from_advantage(0.0), *places)

    def of(self, record: Any, *places: float | str) -> Any:
        """The number of a record of ``reticent.adversaries.report``, at one of its places."""
        stated = getattr(record, self.field)
        for place in places:
            stated = stated[repr(float(place))]
        return stated

    def at(self, *places: float | str) -> str:
        """The heading with its place."""
        return f"{self.heading}@{','.join(f'{float(x):g}' for x in places)}" if places else self.heading

    def stated(self, record: Any) -> list[tuple[str, ...]]:
        """The places at which a record states it, as texts."""
        levels: list[tuple[tuple[str, ...], Any]] = [((), getattr(record, self.field))]
        for _ in self.places:
            levels = [((*at, key), inner) for at, level in levels for key, inner in level.items()]
        return [at for at, _ in levels]

    def asked(self, questions: Questions) -> Iterator[tuple[float, ...]]:
        """Each place at which it is read; one without numbers, where it has no place."""
        for places in product(*(getattr(questions, asked) for _, asked in self.places)):
            if not (self.read is measures.ppv and places[1] == 0.0):  # nobody is flagged
                yield places


_PRIOR, _FPR = ("prior", "priors"), ("fpr", "fprs")
MEASURES: dict[str, Measure] = {
    "advantage": Measure("advantage", "advantage", measures.advantage),
    "bayes_security": Measure("bayes_security", "security", measures.bayes_security),
    "success": Measure("success_at_prior", "guess", measures.success, 1.0, (_PRIOR,)),
    "tpr": Measure("tpr_at_fpr", "TPR", measures.tpr_at_fpr, 1.0, (_FPR,)),
    "ppv": Measure("ppv_at_prior_and_fpr", "PPV", measures.ppv, 1.0, (_PRIOR, _FPR)),
    "epsilon": Measure("epsilon_at_delta", "epsilon", measures.epsilon_at_delta, math.inf, (("delta", "deltas"),)),
    "delta": Measure("delta_at_epsilon", "delta", measures.delta_at_epsilon, 1.0, (("epsilon", "epsilons"),)),
    "secret": Measure(
        "secret_at_bits_and_guesses",
        "secret",
        measures.secret_success,
        1.0,
        (("secret_bits", "secret_bits"), ("guesses", "guesses")),
        ("RETICENT:secret",),
        ("secret-entropy", "secret-nowhere-else"),
        one_sided=True,
    ),
    "recovered": Measure(
        "recovered_at_baseline",
        "recovered",
        measures.recovered,
        1.0,
        (("baseline", "baselines"),),
        ("RETICENT:recovery",),
        ("recovery-baseline",),
        one_sided=True,
    ),
    "mu": Measure("mu", "mu", measures.mu, math.inf),
}
"""Every number of a report, in the order of its columns; by the name that a policy and a target use."""
