"""What is done with the records beside training on them."""

from __future__ import annotations

from reticent.facts.base import Fact, Severity

SEEN_IN_EVALUATION = Fact("records-seen-in-evaluation", Severity.WARNING)
