"""Take docs/figures/certificate.png: the first part of the page of a signed run with one record of each person.

Needs the ``train`` and ``browser`` extras, and Chromium as ``$RETICENT_CHROMIUM`` or on the path. Run from the root of
the repository: ``python -m docs.figures.certificate``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from benchmarks.dashboard import CHROMIUM, FLAGS

PICTURE = Path(__file__).with_suffix(".png")
CONFIG = """
data: {name: breast-cancer}
model: {kind: logistic}
noise_multiplier: 4.0
max_grad_norm: 1.0
batch_size: 64
epochs: 40
records_per_user: 1
learning_rate: 0.5
"""
ISSUER = "Clinic North, data office"
COMMANDS = (
    ("keygen", "issuer"),
    ("train", "tumours.yaml", "--out", "run"),
    ("certify", "run", "--sign", "issuer", "--out", "page", "--subject", "Tumour model 3", "--issuer", ISSUER),
)


def main() -> None:
    """Train, certify, open the page, and keep what is seen first."""
    with TemporaryDirectory() as folder, sync_playwright() as engine:
        Path(folder, "tumours.yaml").write_text(CONFIG)
        for command in COMMANDS:
            subprocess.run([sys.executable, "-m", "reticent", *command], cwd=folder, check=True)
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS, chromium_sandbox=False)
        shown = browser.new_page(viewport={"width": 1024, "height": 1180}, device_scale_factor=1.25)
        shown.goto(Path(folder, "page", "certificate.html").as_uri())
        shown.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
