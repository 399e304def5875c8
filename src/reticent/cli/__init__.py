"""The command line: one file per verb."""

from reticent.cli import audit, audit_loop, calibrate, certify, compare, dashboard, gate, lint, risk, train, verify
from reticent.cli._app import app, main

__all__ = [
    "app",
    "audit",
    "audit_loop",
    "calibrate",
    "certify",
    "compare",
    "dashboard",
    "gate",
    "lint",
    "main",
    "risk",
    "train",
    "verify",
]
