"""Figure of docs/theory/auditing.md: a measured trade-off curve with its band beside a true and a false claim.

Run from the root of the repository: ``python docs/figures/auditing.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "reticent"

import matplotlib.pyplot as plt  # noqa: E402

from reticent.auditing import Design, Scores, audit_mu, empirical_trade_off  # noqa: E402
from reticent.kernel.curves import GaussianTradeOff  # noqa: E402


def main() -> None:
    """Draw ``auditing.svg`` beside this file."""
    rng = np.random.default_rng(1)
    scores = Scores(rng.normal(1, 1, 500), rng.normal(0, 1, 500), design=Design.INDEPENDENT)
    curve, alpha = empirical_trade_off(scores), np.linspace(0, 1, 1001)
    figure, axes = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
    axes.plot(alpha, 1 - alpha, color="0.7", lw=1, label="guessing")
    axes.fill_between(alpha, curve.lower(alpha), curve.upper(alpha), color="C0", alpha=0.2, lw=0, label="95% band")
    axes.plot(alpha, curve.estimate(alpha), color="C0", lw=1, label="attack, 500 + 500 scores")
    axes.plot(alpha, GaussianTradeOff(1.0).beta(alpha), "k--", lw=1, label="true curve, mu = 1")
    axes.plot(alpha, GaussianTradeOff(0.3).beta(alpha), color="C3", lw=1, label="refuted claim, mu = 0.3")
    axes.set(xlabel="false positive rate", ylabel="false negative rate", xlim=(0, 1), ylim=(0, 1))
    axes.set_title(f"lower bound on mu at 95%: {audit_mu(scores).value:.2f}", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
