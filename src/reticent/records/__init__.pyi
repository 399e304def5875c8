"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.records.ledger import RunLedger as RunLedger
from reticent.records.ledger import ledger_of as ledger_of
from reticent.records.publication import published as published
