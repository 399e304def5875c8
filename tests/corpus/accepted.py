"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

ACCEPTED: dict[str, str] = {
    "doors/certify dpsgd --noise-multiplier *": "who leaves out the sampler is told that Poisson draws are declared",
}
