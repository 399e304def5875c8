"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_BROUGHT = "issue 52: a sampler brings its condition, and the order of samplers is that of their conditions"
_BLOCKS = "issue 52: block-allocation is in the list of samplers"
_SAID = (
    "issue 52: a sampler reads its process of opake; its note is filled from its fields; one function makes its parts"
)

ACCEPTED: dict[str, str] = {
    "surface/names; proofs/CONDITIONS": _BROUGHT,
    "surface/names; proofs/Kind*": _BROUGHT,
    "doors/calibrate samplers --dataset-size 6000*/out": _BROUGHT,
    "surface/help; calibrate samplers/out": _BLOCKS,
    "surface/sentences; conditions/block-allocation-draws": _BLOCKS,
    "surface/sentences; theorems/RETICENT:block-allocation": _BLOCKS,
    "surface/sentences; theorems/FELDMAN2025:Theorem 3.1": _SAID,
    "surface/sentences; theorems/RETICENT:kept-allocation": _SAID,
    "doors/refused: *--sampler poison/err": _BLOCKS,
    **dict.fromkeys((f"surface/names; reticent/Sampler.{name}" for name in ("attained", "batches_of", "told")), _SAID),
    **dict.fromkeys((f"surface/names; reticent/Sampler.{name}" for name in ("exposed", "of_process")), _SAID),
}
