"""Attacks: a finished run, or a training loop, to scores; and audits of whole implementations.

A file here attacks; what its scores prove is in ``reticent.auditing``, and what an attacker could prove at best is in
``reticent.adversaries``. Here are the attacks that have a name; no torch is needed to list them. Everything else is
imported from its own file: ``loop``, ``mechanics``, ``white_box``, ``shadow``, ``magnitude``, ``attribute_inference``.
"""

from reticent.attacks.base import ATTACKS, Attack, AttackSettings, find_attack
from reticent.attacks.black_box import ConfidenceAttack, LiraOffline, LiraOnline, LossAttack, Rmia, RmiaOffline
from reticent.attacks.gradient import CanaryAttack, GlirAttack

for _kind in (LossAttack, ConfidenceAttack, LiraOnline, LiraOffline, Rmia, RmiaOffline, CanaryAttack, GlirAttack):
    ATTACKS.add(_kind)

__all__ = ["ATTACKS", "Attack", "AttackSettings", "find_attack"]
