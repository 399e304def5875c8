"""Take docs/figures/dashboard.png: the page that explores, as it opens, with one weaker attacker.

Needs the ``browser`` extra, and Chromium as ``$RETICENT_CHROMIUM`` or on the path. Run from the root of the repository:
``python -m docs.figures.dashboard``.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.dashboard import CHROMIUM, FLAGS, page, server

PICTURE = Path(__file__).with_suffix(".png")


def main() -> None:
    """Open the page, wait for the proof, and keep what is seen."""
    with sync_playwright() as engine, server() as address:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS, chromium_sandbox=False)
        with page(browser, address, "attackers=relaxed", width=1440) as shown:
            shown.wait_for_selector("#figure .annotation")
            shown.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
