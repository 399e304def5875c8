"""What the form of the model says about gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reticent.facts.base import Fact, Severity
from reticent.kernel.proofs import Status
from reticent.mechanisms.gradients import Gradients

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    """What it ensures, where it is that of the whole chain; ``known-share`` is about the share in the record, or more.

    Statistics of other records that went into the features before a loop cannot be seen: so features that were seen to
    stay the same still rest on the word of its program.
    """
    form = run.gradients
    if form is None or form.kind is Gradients.ANY or any(one.gradients != form for one in run.earlier):
        return {}
    keys = [kind.value for kind in form.ensured if kind not in (Gradients.FIXED, Gradients.ANY)]
    found = dict.fromkeys((*keys, "known-share"), Status.CHECKED)
    if form.features == "same":
        found["same-features"] = Status.DECLARED if run.config is None else Status.CHECKED
        if form.kind is Gradients.FIXED:
            found |= dict.fromkeys(("fixed-length", "independent-directions"), Status.CHECKED)
    return found


FORM = Fact("form-of-gradients", Severity.NOTE, vouches=_vouches)
