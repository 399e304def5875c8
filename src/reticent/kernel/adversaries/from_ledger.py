"""What a ledger saw, brought to an attacker and to what its numbers rest on."""

from __future__ import annotations

from reticent.kernel.adversaries.base import Adversary, Assessment, Method
from reticent.kernel.adversaries.witness import Witness
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.mechanisms.base import OF_A_START
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status, condition

_OF_THE_FORM = ("fixed-length", "one-direction", "hard-label-head", "linear-head", "independent-directions")


def assess_seen(
    adversary: Adversary, mechanism: Mechanism, neighbouring: Neighbouring, method: Method, witness: Witness | None
) -> Assessment:
    """One attacker against what was released, with all that ``witness`` saw of it.

    Args:
        adversary: who attacks. Its open parameters are answered as the ledger saw them.
        witness: the ledger of the run; None where only parameters are known.

    Raises:
        ParameterError: a parameter of the attacker contradicts what was seen.
        UnsupportedError: nothing is proven for this combination.
    """
    if witness is None:
        return adversary.assess(mechanism, neighbouring, method)
    fitted = adversary if witness.gradients is None else adversary.fitted(witness.gradients)
    found = fitted.assess(mechanism, neighbouring, method)
    unseen = {one.key: Status.ASSUMED for one in mechanism.conditions if one.status is Status.DECLARED}
    seen = {**unseen, **witness.vouches(), **fitted.checked_by(witness)}
    open_ones = {"same-stop": witness.looks_to_stop, "kept-places": witness.rearranges(found.neighbouring)}
    more = [condition(key) for key, applies in open_ones.items() if applies]
    found = found.under(*map(condition, OF_A_START), *more).vouched(seen)
    obstacle = None if witness.gradients is None else witness.gradients.obstacle
    assumed = any(one.key in _OF_THE_FORM and one.status is Status.ASSUMED for one in found.conditions)
    return (
        found.prefaced(Message("note.looked-at", obstacle=obstacle.text)) if obstacle is not None and assumed else found
    )


def witness_of(what: object) -> Witness | None:
    """The ledger that ``what`` is or holds; None where it is something else."""
    for known in (what, getattr(what, "ledger", None)):
        if callable(getattr(known, "vouches", None)):
            return known  # type: ignore[return-value]
    return None
