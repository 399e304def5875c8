"""Attacks: model and records to scores; and audits of whole implementations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.attack.attribute_inference import attack_attribute
    from reticent.attack.canaries import CanaryAudit
    from reticent.attack.loop import audit_loop
    from reticent.attack.magnitude import ReleaseGame, magnitude_scores, one_sided_scores, play_tasks
    from reticent.attack.mechanics import MechanicsReport, audit_mechanics
    from reticent.attack.own_trainer import OwnTrainer
    from reticent.attack.participation import Check
    from reticent.attack.registry import NAMES, Attack, AttackSettings, find_attack
    from reticent.attack.shadow import ShadowModels, ShadowPlan, train_shadow_models
    from reticent.attack.shadow_scores import lira_offline, lira_online, rmia
    from reticent.attack.white_box import Probe, Trace, Trainer

_PLACES = {
    "attribute_inference": ("attack_attribute",),
    "canaries": ("CanaryAudit",),
    "loop": ("audit_loop",),
    "magnitude": ("ReleaseGame", "magnitude_scores", "one_sided_scores", "play_tasks"),
    "mechanics": ("MechanicsReport", "audit_mechanics"),
    "own_trainer": ("OwnTrainer",),
    "participation": ("Check",),
    "registry": ("NAMES", "Attack", "AttackSettings", "find_attack"),
    "shadow": ("ShadowModels", "ShadowPlan", "train_shadow_models"),
    "shadow_scores": ("lira_offline", "lira_online", "rmia"),
    "white_box": ("Probe", "Trace", "Trainer"),
}
_MODULE = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "NAMES",
    "Attack",
    "AttackSettings",
    "CanaryAudit",
    "Check",
    "MechanicsReport",
    "OwnTrainer",
    "Probe",
    "ReleaseGame",
    "ShadowModels",
    "ShadowPlan",
    "Trace",
    "Trainer",
    "attack_attribute",
    "audit_loop",
    "audit_mechanics",
    "find_attack",
    "lira_offline",
    "lira_online",
    "magnitude_scores",
    "one_sided_scores",
    "play_tasks",
    "rmia",
    "train_shadow_models",
]


def __getattr__(name: str) -> object:
    """Names are imported when they are first used: some need torch, and the list of attacks must not."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
