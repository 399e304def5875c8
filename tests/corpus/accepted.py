"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

ACCEPTED: dict[str, str] = {
    "surface/sentences; theorems/KAISSIS2022:Theorem 2": "issue 52: it is mu of the worst case, squared.",
    "surface/sentences; theorems/RETICENT:common-sign": "issue 52: one way in to the unknown sign.",
    "surface/sentences; theorems/RETICENT:laplace-sign": "issue 52: one way in to the unknown sign.",
}
