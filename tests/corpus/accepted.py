"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

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
}
