"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

ACCEPTED: dict[str, str] = {
    "assessments/poisson, little noise; relaxed, a measured law/*/mu_at_rates_above/1e-09[[]]/claimed": (
        "a measured law is summed over its pairs; its moments were interpolated between 160 places"
    ),
    "calibrations/poisson; *; relaxed*/rows/relaxed, add-remove/*": (
        "one law of overlaps for one record: upper ends are 1e-5 higher, and the search ends elsewhere by up to 5e-6"
    ),
    "calibrations/poisson; *; mixed/rows/mixed, add-remove/*": "the same, 2e-7",
    "surface/sentences; theorems/RETICENT:second-moment*": "the code of both theorems is one function now",
    "surface/sentences; theorems/RETICENT:whole-user-directions*": "the code of both theorems is one function now",
}
