"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_NEARER = "RETICENT:composition-enclosure: a rate is the least of tangents, each of which holds"

ACCEPTED: dict[str, str] = {
    "calibrations/poisson; tpr=0.05@0.01; */*achieved": _NEARER,
    "calibrations/poisson; secret=0.001@13.29,10; default/*achieved": _NEARER,
    "doors/the example package/groups": "routes are asked by priority: other packages' are listed with the first curve",
}
