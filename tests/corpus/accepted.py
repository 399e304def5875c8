"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_SAMPLERS = "issue 52: DPSGD's fields of one sampler are the sampler's"
_BLOCKS = "issue 52: block-allocation is in the list of samplers"

ACCEPTED: dict[str, str] = {
    "surface/help; calibrate samplers/out": _BLOCKS,
    "doors/calibrate samplers --dataset-size 6000*/out": _BLOCKS,
    "doors/refused: risk dpsgd *--sampler poison/err": _BLOCKS,
} | dict.fromkeys(
    (
        *(f"surface/names; reticent/{name}" for name in ("DPSGD", "Sampler", "calibrate_samplers", "dpsgd")),
        *(f"surface/names; calibration/{name}" for name in ("Choice", "LeftOut", "largest_batch")),
        "surface/names; calibration/calibrate_samplers",
        *(f"surface/names; mechanisms/{name}" for name in ("DPSGD", "Sampler")),
        *(f"surface/names; training/{name}" for name in ("Settings", "TrainConfig")),
    ),
    _SAMPLERS,
)
