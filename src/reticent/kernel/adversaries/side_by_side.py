"""Several adversaries side by side, never without the worst case; what they surely learn is never above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from reticent.kernel.adversaries.base import Adversary, Assessment, Method
from reticent.kernel.adversaries.from_ledger import assess_seen
from reticent.kernel.adversaries.witness import Witness
from reticent.kernel.adversaries.worst_case import WorstCase
from reticent.kernel.errors import DominanceError, ParameterError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring

_THRESHOLDS = np.array([-8.0, -3.0, -1.0, -0.3, 0.0, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0])
_TOLERANCE = 1e-6
Ask = Callable[[Adversary, Mechanism, Neighbouring, Method, Witness | None], Assessment]
"""Answers for one attacker."""


def assess(
    mechanism: Mechanism,
    adversaries: Sequence[Adversary],
    neighbouring: Neighbouring | None = None,
    method: Method | None = None,
    witness: Witness | None = None,
    ask: Ask = assess_seen,
) -> tuple[Assessment, ...]:
    """Assess each adversary, in the order given, with the worst case of each relation used.

    A worst case that was not asked for is appended, one for each neighbouring relation in the results.

    Args:
        neighbouring: None means each adversary's own ``relation``.
        method: None means each adversary's own; one that does not answer it uses its own and says so.
        witness: the ledger of the run; None where only parameters are known.
        ask: who answers for one attacker.

    Raises:
        DominanceError: what an attacker surely learns came out above the worst case of the same release.
        UnsupportedError: nothing is proven for one of the combinations.
    """
    results = [
        _assessed(adversary, mechanism, neighbouring or adversary.relation, method, witness, ask)
        for adversary in adversaries
    ]
    worst = {r.neighbouring: r for r in results if r.adversary.strongest}
    for result in tuple(results):
        if result.neighbouring not in worst:
            worst[result.neighbouring] = ask(WorstCase(), mechanism, result.neighbouring, Method.EXACT, witness)
            results.append(worst[result.neighbouring])
        check_dominance(result, worst[result.neighbouring])
    return tuple(results)


def assess_answerable(
    mechanism: Mechanism,
    adversaries: Sequence[Adversary],
    neighbouring: Neighbouring | None = None,
    method: Method | None = None,
    witness: Witness | None = None,
    ask: Ask = assess_seen,
) -> tuple[tuple[Assessment, ...], dict[str, str]]:
    """Like ``assess``, but an adversary that cannot be answered is left out, with its reason by name.

    Args:
        mechanism: what was released.
        adversaries: who attacks, in the order of the answers.
        neighbouring: None means each adversary's own ``relation``.
        method: None means each adversary's own.
        witness, ask: as for ``assess``.

    Returns:
        The assessments, each once; and why others were left out, by name of the adversary.

    Raises:
        DominanceError: as for ``assess``.
    """
    results: dict[tuple[Adversary, Neighbouring], Assessment] = {}
    skipped: dict[str, str] = {}
    for adversary in adversaries:
        try:
            result, *worst = assess(mechanism, [adversary], neighbouring, method, witness, ask)
        except (UnsupportedError, ParameterError) as error:
            skipped[adversary.name] = str(error)
            continue
        results[result.adversary, result.neighbouring] = result
        for one in worst:
            results.setdefault((one.adversary, one.neighbouring), one)
    return tuple(results.values()), skipped


def _assessed(
    adversary: Adversary,
    mechanism: Mechanism,
    neighbouring: Neighbouring,
    method: Method | None,
    witness: Witness | None,
    ask: Ask,
) -> Assessment:
    own = adversary.methods[0]
    if method is None or method in adversary.methods:
        return ask(adversary, mechanism, neighbouring, method or own, witness)
    instead = f"Method {method.value} is not known here: {own.value} instead."
    return ask(adversary, mechanism, neighbouring, own, witness).prefaced(instead)


def check_dominance(result: Assessment, worst: Assessment) -> None:
    """Nobody knows more than the worst case: refuse what is known of an attacker if it says otherwise.

    Compares delta at twelve thresholds of both signs. What is compared is the curve from below, where there is one: a
    bound may be loose, and lie above the worst case. Estimates are judged by the enclosure of the truth that comes
    with them, since they may err to either side.

    Args:
        worst: of ``WorstCase``, for the same release and relation.

    Raises:
        DominanceError: beyond rounding, the curve gives the attacker more than the worst case does.
    """
    if result.truth is None and not result.claim.proven:
        return
    if result.truth is not None and result.truth is worst.truth:  # it is the worst case, whose curve nobody may need
        return
    curve = result.truth.optimistic if result.truth is not None else result.curve
    excess = curve.delta(_THRESHOLDS) - worst.curve.delta(_THRESHOLDS)
    if np.max(excess) > _TOLERANCE:
        at = float(_THRESHOLDS[int(np.argmax(excess))])
        raise DominanceError(
            f"attacker {result.adversary.name} exceeds the worst case by {np.max(excess):.3g} in delta at epsilon {at}"
        )
