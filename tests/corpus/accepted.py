"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_UNUSED = "no verb, how-to, paper, certificate or attack used it"
_BESIDE = "an attack that tests play: it lies beside them"
_ONE_FORM = "an implementation under audit has one form"
_SAMPLERS = "issue 52: DPSGD's fields of one sampler are the sampler's"
_MOVED = ("DONG2022:Theorem 4.2", "FELDMAN2025:Lemma 3.2", "FELDMAN2025:Theorem 3.1", "RETICENT:fixed-size-dominance",
          "RETICENT:kept-allocation", "RETICENT:replace-dominance", "RETICENT:shuffled-epochs",
          "RETICENT:truncated-dominance", "ZHU2022:Proposition 30")  # fmt: skip
_AFTER = "issue 52: options of samplers stand after --sampler, in the order of the list"
_BLOCKS = "issue 52: block-allocation is in the list of samplers"

ACCEPTED: dict[str, str] = {
    "surface/names; attacks/attack_attribute": _UNUSED,
    "surface/names; attacks/CanaryAudit": _UNUSED,
    "surface/names; auditing/NoiseBound": _UNUSED,
    "surface/names; auditing/audit_noise": _UNUSED,
    "surface/names; auditing/PairedCanaries": _UNUSED,
    "surface/names; auditing/audit_*_paired": _UNUSED,
    "surface/names; attacks/ConditionAudit": _BESIDE,
    "surface/names; attacks/LearningGame": _BESIDE,
    "surface/names; attacks/ReleaseGame": _BESIDE,
    "surface/names; attacks/audit_direction_condition": _BESIDE,
    "surface/names; attacks/magnitude_scores": _BESIDE,
    "surface/names; attacks/one_sided_scores": _BESIDE,
    "surface/names; attacks/Trace": _ONE_FORM,
    "surface/names; attacks/Trainer": _ONE_FORM,
    "surface/names; attacks/TrainFunction": _ONE_FORM,
    "surface/names; attacks/audit_mechanics": _ONE_FORM,
    "surface/names; curves/ProfileTradeOff": "a second engine beside polygon_above, which nothing used but from_pld",
    "surface/help; calibrate samplers/out": _BLOCKS,
    "doors/calibrate samplers --dataset-size 6000*/out*": _BLOCKS,
    "doors/refused: *--sampler poison/err": _BLOCKS,
    "doors/the example package/groups": "issue 52: the example package has a sampler",
    "surface/help; *dpsgd/out": _AFTER,
    "surface/help; certify/out": _AFTER,
    **dict.fromkeys(
        (
            *(f"surface/names; reticent/{name}" for name in ("DPSGD", "Sampler", "calibrate_samplers", "dpsgd")),
            *(f"surface/names; {room}/DPSGD.*" for room in ("reticent", "mechanisms")),
            *(f"surface/names; {room}/Sampler.*" for room in ("reticent", "mechanisms")),
            *(f"surface/names; api/{name}" for name in ("calibrate_samplers", "dpsgd")),
            "surface/names; calibration/Plan.*",
            *(f"surface/sentences; theorems/{key}" for key in _MOVED),
            *(f"surface/names; calibration/{name}" for name in ("Choice", "LeftOut", "largest_batch")),
            "surface/names; calibration/calibrate_samplers",
            *(f"surface/names; mechanisms/{name}" for name in ("DPSGD", "Sampler")),
            *(f"surface/names; training/{name}" for name in ("Settings", "TrainConfig")),
        ),
        _SAMPLERS,
    ),
}
