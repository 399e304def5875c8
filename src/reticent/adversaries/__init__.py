"""Adversaries: *what was released* x *who attacks* gives a trade-off curve and its claim.

A file here is one attacker: what they know, and the proof of what they can learn. Mathematics that one attacker alone
needs is in a folder of its own (``relaxed``, ``game``). The composition of the worst case is in
``reticent.accountants``; attacks that run on a trained model are in ``reticent.attacks``.
"""

from reticent.adversaries.attribute.adversary import Attribute
from reticent.adversaries.base import ADVERSARIES, Adversary, Assessment, Method, everybody, style_of
from reticent.adversaries.final_model import FinalModel
from reticent.adversaries.game.adversary import MembershipGame
from reticent.adversaries.membership import Membership
from reticent.adversaries.mixed import Mixed
from reticent.adversaries.relaxed.adversary import Relaxed
from reticent.adversaries.relaxed.norm_only import NormOnly
from reticent.adversaries.side_by_side import assess, assess_answerable, check_dominance
from reticent.adversaries.worst_case import WorstCase
from reticent.curves.enclosure import Interval
from reticent.proofs import Claim

for _kind in (WorstCase, Relaxed, Mixed, Membership, MembershipGame, NormOnly, FinalModel, Attribute):
    ADVERSARIES.add(_kind)

__all__ = [
    "ADVERSARIES",
    "Adversary",
    "Assessment",
    "Attribute",
    "Claim",
    "FinalModel",
    "Interval",
    "Membership",
    "MembershipGame",
    "Method",
    "Mixed",
    "NormOnly",
    "Relaxed",
    "WorstCase",
    "assess",
    "assess_answerable",
    "check_dominance",
    "everybody",
    "style_of",
]
