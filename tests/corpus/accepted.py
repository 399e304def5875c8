"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_UNUSED = "no verb, how-to, paper, certificate or attack used it"
_BESIDE = "an attack that tests play: it lies beside them"
_ONE_FORM = "an implementation under audit has one form"

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
}
