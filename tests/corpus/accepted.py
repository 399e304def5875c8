"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

ACCEPTED: dict[str, str] = {
    "doors/certify dpsgd --noise-multiplier *": "who leaves out the sampler is told that Poisson draws are declared",
    "surface/sentences; theorems/CHERUBIN2024:Corollary 7*": "the code that is left in the package",
    "surface/sentences; theorems/RETICENT:hellinger-bracket*": "the code that is left in the package",
}
