"""Headless Chromium for tests of pages: run by name with ``pytest -m browser``.

It is looked for as ``$RETICENT_CHROMIUM`` or on the path; with ``RETICENT_SCREENSHOTS=FOLDER`` pictures are kept there
to look at.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("RETICENT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
MARKS = [
    pytest.mark.browser,
    pytest.mark.timeout(900),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]
FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'reticent[browser]'")
    with playwright.sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS, chromium_sandbox=False)
        yield running
        running.close()


def keep(page: Any, name: str) -> None:
    """A picture to look at."""
    if folder := os.environ.get("RETICENT_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def serious(page: Any) -> dict[str, str]:
    """What axe finds serious or critical, and where first."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    found = [v for v in axe.run(page).response["violations"] if v["impact"] in ("serious", "critical")]
    return {v["id"]: v["nodes"][0]["html"][:200] for v in found}
