"""Plant one bug at a time in the error terms of composition, and see whether their tests fail.

``python tests/mutants/run.py [NAME ...]``: each mutant is an edit of one line in a temporary copy of ``src``. It is
killed if the named tests fail. Survivors are printed and make the exit code 1.
"""

# ruff: noqa: E501
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = "reticent/composition/"
SIGN = CORE + "sign/"
SIGNS = "tests/composition/test_sign_error_terms.py"
TERMS = "tests/composition/test_error_terms.py"
ENCLOSURE = "tests/composition/test_enclosure.py"
SPLIT = "tests/composition/test_split.py"


@dataclass(frozen=True)
class Mutant:
    """One edit.

    Attributes:
        name: what is broken.
        file: below ``src``.
        before, after: a text that stands there once, and what replaces it.
        tests: that should fail, with pytest's options.
    """

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...] = (TERMS,)


MUTANTS = (
    Mutant("power: rounding", CORE + "_power.py", "np.roll(mass, (peak - first) % points), 0.0), float(rounding)", "np.roll(mass, (peak - first) % points), 0.0), 0.0"),
    Mutant("power: mass outside", CORE + "_power.py", "    return float(np.exp(best))", "    return 0.0"),
    Mutant("lattice: error of one step", CORE + "routes/lattice.py", "_STEP_ERROR = 64 * EPS", "_STEP_ERROR = 0.0 * EPS"),
    Mutant("lattice: errors of all steps", CORE + "routes/lattice.py", "lost_q + ups.slack + rounding", "lost_q + ups.slack"),
    Mutant("split: large steps are no small ones", CORE + "routes/split.py", "small, count - most, width", "small, count, width", (SPLIT, "-k", "no_small_ones")),
    Mutant("split: more large steps than counted", CORE + "routes/split.py", "points, _TAIL), _FAILED)", "points, _TAIL), -700.0)", (SPLIT, "-k", "paid_for")),
    Mutant("laws: nodes left out", CORE + "pairs/sampled_gaussian.py", "        return sum(math.exp(min(tail, 700.0)) for tail in tails)", "        return 0.0"),
    Mutant("laws: rule", CORE + "pairs/sampled_gaussian.py", "error = self.rule(c, frequencies) + steady.rest[0]", "error = 0.0 * frequencies + steady.rest[0]", ("tests/composition/test_laws.py",)),
    Mutant("certified: rule", CORE + "routes/advantage.py", "off = law.rule(0.5, t) + real.rest[0]", "off = real.rest[0]"),
    Mutant("certified: alias", CORE + "routes/advantage.py", "max(value - slack - alias, 0.0)", "max(value - slack, 0.0)"),
    Mutant("affinity: radius", CORE + "pairs/affinity.py", "    return trapezoid + 2.0 * (right + left)", "    return 0.0 * (right + left)"),
    Mutant("affinity: truncated tails", CORE + "pairs/affinity.py", "    return trapezoid + 2.0 * (right + left)", "    return trapezoid"),
    Mutant("cheap bounds: what the grid misses, above", CORE + "routes/bounds.py", "np.logaddexp(_least(logs, size, thresholds), math.log(max(lost, 1e-300)))", "_least(logs, size, thresholds)"),
    Mutant("cheap bounds: what the grid misses, below", CORE + "routes/bounds.py", "np.logaddexp(fnr, math.log(max(lost, 1e-300)))", "fnr"),
    Mutant("cut moments: probability left out", CORE + "routes/transform.py", "* lost / step.count\n", "* 0.0\n"),
    Mutant("cut moments: lower end of a cell", CORE + "routes/transform.py", "np.maximum(excess[:, :-1], excess[:, 1:])", "excess[:, :-1]"),
    Mutant("contour: aliases", CORE + "routes/contour.py", "near * (self._right(thresholds) + self._left(thresholds)))", "0.0 * thresholds)", (ENCLOSURE,)),
    Mutant("contour: truncation", CORE + "routes/contour.py", "error + tail * self.beyond / np.pi", "error", (ENCLOSURE,)),
    Mutant("sign lattice: reach", SIGN + "lattice.py", "steps * noise.lost", "0.0", (SIGNS,)),
    Mutant("sign lattice: rounding of delta", SIGN + "lattice.py", "rounding * (q + grown * p)", "0.0", (SIGNS,)),
    Mutant("sign lattice: rounding of tests", SIGN + "lattice.py", "_tests(plan, thresholds, lost + rounding)", "_tests(plan, thresholds, lost)", (SIGNS,)),
    Mutant("sign lattice: powers, delta", SIGN + "lattice.py", "+ slack_present + grown * slack_absent", "", (SIGNS,)),
    Mutant("sign lattice: powers, tests", SIGN + "lattice.py", "+ slack_absent + lost", "+ lost", (SIGNS,)),
    Mutant("sign transform: all copies", SIGN + "transform.py", "+ error + alias, 0.0, 1.0)", "+ error, 0.0, 1.0)", (SIGNS,)),
    Mutant("sign transform: copies beside", SIGN + "transform.py", "    return beside + _above_in_b", "    return 0.0 * beside + _above_in_b", (SIGNS,)),
    Mutant("sign transform: copies above", SIGN + "transform.py", "(line - theta) * period)\n\n", "(line - theta) * period) * 0.0\n\n", (SIGNS,)),
    Mutant("sign transform: copies below", SIGN + "transform.py", "_geometric((theta - line) * period)", "0.0", (SIGNS,)),
    Mutant("sign transform: frequencies left out", SIGN + "transform.py", "(plan.outside + float(far))", "float(far)", (SIGNS,)),
    Mutant("sign transform: rounding", SIGN + "transform.py", "(truncation + _EPS * size)", "truncation", (SIGNS,)),
)  # fmt: skip


def killed(mutant: Mutant, folder: Path) -> bool:
    """Whether the tests fail on a copy of ``src`` with the edit."""
    copy = folder / "src"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / "src", copy)
    path = copy / mutant.file
    text = path.read_text()
    if text.count(mutant.before) < 1:
        raise SystemExit(f"{mutant.name}: {mutant.file} has no {mutant.before!r}; mend this list")
    path.write_text(text.replace(mutant.before, mutant.after))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *mutant.tests]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{mutant.name}: pytest ended with {done.returncode}\n{done.stdout.decode()[-2000:]}")
    return done.returncode == 1


def main(names: list[str]) -> int:
    """Run the mutants whose name contains one of ``names``, or all; the number of survivors."""
    chosen = [m for m in MUTANTS if not names or any(name in m.name for name in names)]
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        for mutant in chosen:
            dead = killed(mutant, Path(folder))
            survivors += not dead
            print(f"{'killed' if dead else 'SURVIVED':9s}{mutant.name}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} killed")
    return survivors


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
