"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_UNUSED = "no verb, how-to, paper, certificate, attack or benchmark used it"

ACCEPTED: dict[str, str] = {
    "surface/names; sensitivity/GradientSensitivity.largest": "R_t of a batch alone: the largest of `diameters`",
    "surface/names; pairs/AntipodalGaussianPair.losses": "as of every pair: half of a mirrored grid saved 12 ms",
    "surface/names; attacks/CanaryAudit.*": "the audit of loops has no run of coins any more",
    "surface/names; attacks/rmia": _UNUSED,
    "surface/names; curves/LogErrors.exchanged_where": _UNUSED,
    "surface/names; risk/auc": _UNUSED,
}
