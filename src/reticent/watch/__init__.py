"""Watch any training loop: ``with rt.watch(model, optimizer, loader) as ledger:``.

What is seen becomes a ledger (``reticent.mechanism.watched_run``); what cannot be seen is unknown there and gets the
safe answer.
"""

from reticent._callable import make_callable

make_callable(__name__)
