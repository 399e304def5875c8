"""Adversaries: *what was released* x *who attacks* gives a trade-off curve and its claim."""

from reticent.proofs import Claim
from reticent.threat.attribute import Attribute
from reticent.threat.base import ADVERSARIES, Adversary, Assessment, Interval, Method, everybody
from reticent.threat.membership import Membership
from reticent.threat.membership_game import MembershipGame
from reticent.threat.mixed import Mixed
from reticent.threat.norm_only import NormOnly
from reticent.threat.relaxed import Relaxed
from reticent.threat.side_by_side import assess, assess_answerable, check_dominance
from reticent.threat.worst_case import WorstCase

__all__ = [
    "ADVERSARIES",
    "Adversary",
    "Assessment",
    "Attribute",
    "Claim",
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
]
