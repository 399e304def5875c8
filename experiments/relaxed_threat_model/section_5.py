"""Relaxed threat model, section 5 without a figure: audits of Laplace and sampled noise; reconstruction."""

import numpy as np

from experiments.gallery import Entry, Measured, Published, Relation
from reticent.curves import RelaxedGaussianTradeOff, RelaxedLaplaceTradeOff
from reticent.kernel.curves import GaussianTradeOff, Subsampled, symmetrised

GAMES, RATE, SEEDS, FPR = 10_000, 0.3, range(5), np.linspace(0.01, 0.99, 99)
AUDITS = {
    "Laplace": RelaxedLaplaceTradeOff(1.0),
    "sampled Gaussian": Subsampled(RelaxedGaussianTradeOff(1.0, 1), RATE),
}


def magnitudes(name, seed):
    """|answer| without and with the record; its sign is drawn anew each time, unknown to the attacker."""
    rng = np.random.default_rng(seed)
    noise = rng.laplace(size=(2, GAMES)) if name == "Laplace" else rng.normal(size=(2, GAMES))
    taken = 1.0 if name == "Laplace" else rng.random(GAMES) < RATE
    return np.abs(noise[0]), np.abs(noise[1] + taken * rng.choice([-1.0, 1.0], GAMES))


def reconstruction(seed):
    """A record of +1 or -1 at equal odds; the attacker answers the sign of the noisy sum. Share of right answers."""
    rng = np.random.default_rng(seed)
    record = rng.choice([-1.0, 1.0], GAMES)
    return float((np.sign(record + rng.normal(size=GAMES)) == record).mean())


def run(figure):
    """Two audits of the magnitude test, and the success of reconstruction over the baseline."""
    *panels, last = figure.subplots(1, 3)
    ours = {}
    for axes, (name, curve) in zip(panels, AUDITS.items(), strict=True):
        pairs = [magnitudes(name, seed) for seed in SEEDS]
        power = np.array([(y[:, None] > np.quantile(x, 1 - FPR)).mean(axis=0) for x, y in pairs])
        axes.plot(FPR, 1 - power.mean(axis=0), ".", markersize=3, label="simulated")
        axes.plot(FPR, curve.beta(FPR), color="tab:orange", label="relaxed curve")
        axes.set(title=f"audit, {name}", xlabel="type I error", ylabel="type II error")
        axes.legend()
        gap = np.abs(power - curve.power(FPR)).max(axis=1)
        ours[f"{name}: simulated against theory"] = Measured(float(np.median(gap)), gap.min(), gap.max(), "five seeds")
    relaxed, worst = symmetrised(RelaxedGaussianTradeOff(1.0, 1)), GaussianTradeOff(1.0)
    last.plot(FPR, relaxed.power(FPR), color="tab:blue", label="relaxed, 1 - J")
    last.plot(FPR, worst.power(FPR), color="tab:red", label="worst case, 1 - f: holds")
    right = [reconstruction(seed) for seed in SEEDS]
    last.plot(0.5, np.mean(right), "*", color="black", label="sign of the answer")
    last.set(title="reconstruction", xlabel="success without the release", ylabel="success")
    last.legend()
    bounds = {"relaxed": float(relaxed.power(0.5)), "worst-case": float(worst.power(0.5))}
    ours |= {f"reconstruction: {name} bound at 1/2": value for name, value in bounds.items()}
    excess = np.array(right) - bounds["relaxed"]
    ours["reconstruction: success above the relaxed bound"] = Measured(
        float(excess.mean()), excess.min(), excess.max(), "five seeds"
    )
    return ours


ENTRY = Entry(
    id="relaxed-threat-model/section-5",
    title="Audits of Laplace and sampled noise, and reconstruction (section 5, no figure at hand)",
    run=run,
    published=(
        *(Published(f"{name}: simulated against theory", 0.0, "section 5", 0.03, Relation.AT_MOST) for name in AUDITS),
        Published("reconstruction: success above the relaxed bound", 0.0, "section 5", 0.01, Relation.AT_MOST),
    ),
    reason="Both audits match, but the relaxed curve does not bound reconstruction: who answers the sign of the noisy "
    "sum is right in 84% of the games, the relaxed bound says 71%; only the worst-case curve holds.",
    settings={"shift over noise": 1, "sample rate": RATE, "games": GAMES, "seeds": "0 to 4", "appendix": "not at hand"},
    inches=(9.0, 3.2),
)
