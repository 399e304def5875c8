"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_SEARCH = "epsilon is searched for as thresholds are: what steers moves by 1e-12, the noise by 1e-7, within its slack"
ACCEPTED: dict[str, str] = {
    "calibrations/random-allocation; epsilon=2@1e-5; default/*": _SEARCH,
    "calibrations/samplers; epsilon=2@1e-5/*": _SEARCH,
}
