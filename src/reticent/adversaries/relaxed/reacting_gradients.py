"""The relaxed attacker where a record's gradient reacts to the weights: which theorem fits, and what it needs.

docs/theory/relaxed/reacting.md has the theorems with their proofs, and the training that breaks the others.
"""

from __future__ import annotations

from reticent.adversaries.relaxed import dimension
from reticent.adversaries.relaxed import reacting as engine
from reticent.adversaries.relaxed.question import Question
from reticent.kernel import checks
from reticent.kernel.adversaries.worst_case import worst_case_theorems
from reticent.kernel.errors import ParameterError
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Proof
from reticent.mechanisms.gradients import Gradients

_KEYS = ("RETICENT:reacting-second-moment", "RETICENT:reacting-information", "RETICENT:relaxed-meaning")
FORMS = {kind: kind.value for kind in (Gradients.ONE_DIRECTION, Gradients.HARD_LABEL_HEAD, Gradients.LINEAR_HEAD)}
"""Gradients that react in a way that a theorem covers, with the key of the condition."""


def reacting(asked: Question, kind: Gradients, known_share: float) -> Proof | None:
    """The proof for a target whose gradients react as ``kind`` allows; None where the worst case is the answer."""
    release, replaces = asked.mechanism, asked.neighbouring is Neighbouring.REPLACE
    truth = engine.reacting_in(release, asked.dimension or 1, kind, known_share) if kind in FORMS else None
    if truth is None:
        return None
    share = (Message("note.known-share", share=Figure(f"{known_share:.4g}")),) if known_share > 0.0 else ()
    person = any(part.records > 1 for part in release.parts)
    needs = [FORMS[kind], "same-features"]
    needs += ["known-share"] if share else []
    needs += ["independent-directions"] if person else []
    truth, chain = (dimension.replaced(release, truth.pessimistic), ("RETICENT:chain",)) if replaces else (truth, ())
    keys = (*_KEYS, *chain, *worst_case_theorems(release, asked.neighbouring))
    return asked.proof(truth, keys, (Message("note.reacts"), *share), tuple(needs), floor=False)


def check_reaction(gradients: Gradients | None, known_share: float) -> None:
    """Refuse what contradicts itself.

    Raises:
        ParameterError: a value is outside its domain, or a share is given for gradients that need none.
    """
    if gradients is not None:
        checks.strict_member(Gradients, gradients=gradients)
    if checks.fraction(known_share=known_share) > 0.0 and gradients not in FORMS:
        raise ParameterError(
            "known_share", known_share, f"left out unless gradients is {', '.join(FORMS)}", shown=False
        )
