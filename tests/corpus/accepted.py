"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_NEARER = "RETICENT:composition-enclosure: a rate is the least of tangents, each of which holds"
_HOOK = "a hook of pairs: the advantage alone is a method of the pair, and a selection is composed by what it is lent"

ACCEPTED: dict[str, str] = {
    "calibrations/poisson; tpr=0.05@0.01; */*achieved": _NEARER,
    "calibrations/poisson; secret=0.001@13.29,10; default/*achieved": _NEARER,
    "doors/risk ledger parts.json --json/out/assessments/worst-case, add-remove/*0.001*": _NEARER,
    "certificates/plan; fixed size/document/assessments/*": _NEARER,
    "certificates/loop; planned/document/assessments/*/ppv_at_prior_and_fpr/0.1/0.001*": _NEARER,
    "certificates/loop; opacus/document/assessments/*/ppv_at_prior_and_fpr/0.1/0.001*": _NEARER,
    "surface/sentences; theorems/PAPERNOT2022:Corollary 3": "its code is in `pairs.runs`",
    "surface/sentences; theorems/RETICENT:worst-order": "its code is in `pairs.selected`",
    "surface/names; pairs/*.advantage": _HOOK,
    "surface/names; pairs/*.composed": _HOOK,
    "doors/the example package/groups": "routes are asked by priority: other packages' are listed with the first curve",
}
