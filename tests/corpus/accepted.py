"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_BROUGHT = "issue 52: a sampler brings its condition, and the order of samplers is that of their conditions"

ACCEPTED: dict[str, str] = {
    "surface/names; proofs/CONDITIONS": _BROUGHT,
    "surface/names; proofs/Kind*": _BROUGHT,
    "doors/calibrate samplers --dataset-size 6000*/out": _BROUGHT,
}
