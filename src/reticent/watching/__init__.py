"""Watch any training loop: ``with rt.watch(model, optimizer, loader) as ledger:``.

What is seen becomes a ledger (``reticent.records.ledger``). What cannot be seen is unknown there and gets the safe
answer. Nothing here trains.
"""
