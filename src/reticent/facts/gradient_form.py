"""What the form of the model says about gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reticent.facts.base import Fact, Severity
from reticent.kernel.proofs import Status
from reticent.mechanisms.gradients import Gradients

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_FORMS = {
    Gradients.FIXED: ("one-direction", "hard-label-head", "linear-head", "known-share"),
    Gradients.ONE_DIRECTION: ("one-direction", "hard-label-head", "linear-head", "known-share"),
    Gradients.HARD_LABEL_HEAD: ("hard-label-head", "linear-head", "known-share"),
    Gradients.LINEAR_HEAD: ("linear-head", "known-share"),
    Gradients.ANY: (),
}
_WITH_THE_SAME_FEATURES = {
    Gradients.FIXED: ("same-features", "fixed-length", "independent-directions"),
    Gradients.ONE_DIRECTION: ("same-features",),
    Gradients.HARD_LABEL_HEAD: ("same-features",),
    Gradients.LINEAR_HEAD: ("same-features",),
    Gradients.ANY: (),
}


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    """What it ensures, where it is that of the whole chain; ``known-share`` is about the share in the record, or more.

    Statistics of other records that went into the features before a loop cannot be seen: so features that were seen to
    stay the same still rest on the word of its program.
    """
    form = run.gradients
    if form is None or any(one.gradients != form for one in run.earlier):
        return {}
    found = dict.fromkeys(_FORMS[form.kind], Status.CHECKED)
    if form.features == "same":
        found |= dict.fromkeys(_WITH_THE_SAME_FEATURES[form.kind], Status.CHECKED)
    if run.config is None and "same-features" in found:
        found["same-features"] = Status.DECLARED
    return found


FORM = Fact("form-of-gradients", Severity.NOTE, vouches=_vouches)
