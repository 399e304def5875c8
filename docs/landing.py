"""The first page of the site: one question, one number that moves, a certificate to open."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import reticent as rt
from reticent.certificates.document.sentences import even_guess, percent
from reticent.kernel.text import digits

HERE = Path(__file__).parent
NOISE = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
FIRST = NOISE.index(1.0)
SHOWN = ("certificate.html", "certificate.public.json")


@cache
def table() -> tuple[tuple[str, str, str, str], ...]:
    """For each noise multiplier the share of right guesses of the worst case and of the relaxed attacker, and epsilon.

    Each is rounded up, as a certificate rounds.
    """
    rows = []
    for noise in NOISE:
        risk = rt.assess(rt.dpsgd(noise_multiplier=noise, sample_rate=0.01, steps=1000), ["relaxed"])
        by = {one.adversary: one for one in risk.document.assessments}
        worst, relaxed = (str(percent(even_guess(by[who]), up=True)) for who in ("worst-case", "relaxed"))
        epsilon = by["worst-case"].epsilon_at_delta["1e-05"].value
        rows.append((f"{noise:g}", worst, relaxed, digits(epsilon, up=True)))
    return tuple(rows)


def widget() -> str:
    """The part of the page that moves; without a script it shows one row."""
    noise, worst, relaxed, epsilon = table()[FIRST]
    text = (HERE / "landing.html").read_text(encoding="utf-8")
    places = {"WORST": worst, "RELAXED": relaxed, "NOISE": noise, "EPSILON": epsilon, "TABLE": json.dumps(table())}
    for place, value in {**places, "MOST": str(len(NOISE) - 1), "AT": str(FIRST)}.items():
        text = text.replace(place, value)
    return text


def certificate(folder: Path) -> None:
    """A certificate of a run of ``configs/demo.yaml`` for readers to open, made once."""
    if all((folder / name).exists() for name in SHOWN):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as made:
        named = ["--subject", "A demonstration", "--issuer", "the authors of reticent", "--baseline", "0.01"]
        command = [sys.executable, "-m", "reticent", "certify", "configs/demo.yaml", "--out", made, *named]
        subprocess.run(command, cwd=HERE.parent, check=True, capture_output=True)
        for name in SHOWN:
            copyfile(Path(made) / name, folder / name)
