"""Several processes that train one model: what keeps their ledgers from being the ledger of one loop."""

from __future__ import annotations

from reticent.facts.base import Fact

UNSEEN_PROCESSES = Fact("processes-not-watched")
UNEQUAL_PROCESSES = Fact("processes-differ")
