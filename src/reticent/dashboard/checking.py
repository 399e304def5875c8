"""Checking a certificate in a process of its own: a page must answer others while an untrusted document is derived."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from reticent.certificates.document.declared_text import inert
from reticent.certificates.document.schema import Certificate
from reticent.io.strict import loads
from reticent.kernel.errors import ArtifactError

SECONDS = 60.0
_GRACE = 30.0
"""More, for a machine that is slow to start and to end it."""


def checked(certificate: Certificate, seconds: float = SECONDS) -> tuple[int, tuple[str, ...]]:
    """Derive a certificate again: how many numbers and texts agree, and why it is refused, if it is.

    Args:
        seconds: after which it is given up.

    Raises:
        ArtifactError: it cannot be derived, or not in this time and within the memory that ``reticent verify`` grants.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "certificate.json"
        file.write_text(certificate.to_json(), encoding="utf-8")
        command = [sys.executable, "-m", "reticent", "verify", str(file), "--json", "--timeout", repr(seconds)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + _GRACE, check=False)
        except subprocess.TimeoutExpired:
            raise ArtifactError(f"the document cannot be derived within {seconds:g} seconds") from None
    if done.returncode not in (0, 1) or not done.stdout:
        last = (done.stderr.strip().splitlines() or ["the process that derives it ended"])[-1]
        raise ArtifactError(inert(last.removeprefix("reticent: ").replace(f"{file}: ", "")))
    found = loads(done.stdout, "verify")
    wrong = [f"{d['where']}: says {d['stated']}, derived {d['derived']}" for d in found["differences"] if d["refused"]]
    return found["equal"], tuple(map(inert, [*found["problems"], *wrong]))
