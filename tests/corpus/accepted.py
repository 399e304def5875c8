"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_ASKED = (
    "also beside directions every_step hidden is_worst_by keeps_mu knowing needs relaxed_probability repeated stated "
    "strongest"
)
_ATTACKS = "CanaryAttack ConfidenceAttack GlirAttack LiraOffline LiraOnline LossAttack Rmia"

ACCEPTED: dict[str, str] = {
    f"surface/names; */*.{trait}": "what other files asked by the name of an attacker is a trait of it now"
    for trait in _ASKED.split()
} | {
    f"surface/names; attacks/{name}*": "attacks are named in the list of their folder, which is read when it is asked"
    for name in _ATTACKS.split()
}
