"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_SEARCH = "epsilon is searched for as thresholds are: what steers moves by 1e-12, the noise by 1e-7, within its slack"

ACCEPTED: dict[str, str] = {
    "surface/names; auditing/*.evidence": "a piece of evidence comes with its share of the significance",
    "surface/names; auditing/*.shares": "the shares are said by evidence",
    "surface/names; auditing/*.claim": "what a result may be taken for follows from its type",
    "surface/names; auditing/ConfidenceInterval": "the same",
    "surface/names; auditing/EmpiricalTradeOff": "the same",
    "surface/names; auditing/LowerBound": "the same",
    "surface/names; auditing/Plan": "the same",
    "surface/names; auditing/Verdict": "the same",
    "surface/names; auditing/Asked*": "no statistic read the claims",
    "surface/names; auditing/EmpiricalTradeOff.contains": "tests alone asked it",
    "surface/names; auditing/proportion": "tests alone asked it",
    "surface/names; tasks/Progress*": "the bar measures the time by itself",
    "surface/names; attacks/train_shadow_models": "the cost is announced as a line of text",
    "assessments/poisson, little noise; relaxed, a measured law/*/mu_at_rates_above/1e-09[[]]/claimed": (
        "a measured law is summed over its pairs; its moments were interpolated between 160 places"
    ),
    "calibrations/poisson; *; relaxed*/rows/relaxed, add-remove/*": (
        "one law of overlaps for one record: upper ends are 1e-5 higher, and the search ends elsewhere by up to 5e-6"
    ),
    "calibrations/poisson; *; mixed/rows/mixed, add-remove/*": "the same, 2e-7",
    "surface/sentences; theorems/RETICENT:second-moment*": "the code of both theorems is one function now",
    "surface/sentences; theorems/RETICENT:whole-user-directions*": "the code of both theorems is one function now",
    "calibrations/random-allocation; epsilon=2@1e-5; default/*": _SEARCH,
    "calibrations/samplers; epsilon=2@1e-5/*": _SEARCH,
}
