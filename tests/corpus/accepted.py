"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

ACCEPTED: dict[str, str] = {
    "certificates/*/document/ledger/tally": "what can be added up is stored no more",
    "certificates/*/verify, json/out/declared/ledger.*": "facts of a ledger have other places",
    "certificates/*/verify, json/out/equal": "a ledger has other leaves",
    "certificates/edits; run; *": "facts of a ledger have other places, so other edits are made: none is accepted anew",
    "certificates/edits; loop; *": "facts of a ledger have other places, and so other edits are made: none is accepted",
}
