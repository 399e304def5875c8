"""Attacks: a finished run, or a training loop, to scores; and audits of whole implementations.

A file here attacks; what its scores prove is in ``reticent.auditing``, and what an attacker could prove at best is in
``reticent.adversaries``. What is imported here needs no torch; ``loop``, ``mechanics``, ``white_box``, ``shadow`` and
``attribute_inference`` are imported by their own names.
"""

from reticent.attacks.base import ATTACKS, Attack, AttackSettings, find_attack
from reticent.attacks.black_box import ConfidenceAttack, LiraOffline, LiraOnline, LossAttack, Rmia, RmiaOffline
from reticent.attacks.gradient import CanaryAttack, GlirAttack
from reticent.attacks.magnitude import ReleaseGame, magnitude_scores, one_sided_scores, play_tasks
from reticent.attacks.participation import Check
from reticent.attacks.shadow_scores import lira_offline, lira_online, rmia

for _kind in (LossAttack, ConfidenceAttack, LiraOnline, LiraOffline, Rmia, RmiaOffline, CanaryAttack, GlirAttack):
    ATTACKS.add(_kind)

__all__ = [
    "ATTACKS",
    "Attack",
    "AttackSettings",
    "Check",
    "ReleaseGame",
    "find_attack",
    "lira_offline",
    "lira_online",
    "magnitude_scores",
    "one_sided_scores",
    "play_tasks",
    "rmia",
]
