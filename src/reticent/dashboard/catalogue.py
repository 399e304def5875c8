"""What the page can set: mechanisms with their parameters, attackers with theirs, targets, and what may be searched.

The one place to add to when the library learns a new mechanism or attacker.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from reticent.adversaries import Adversary, everybody
from reticent.calibration import BatchSize, NoiseMultiplier, SampleRate, Steps, Unknown
from reticent.mechanisms import DPSGD
from reticent.registry import parameters_of


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that people set by a slider or by typing.

    Attributes:
        name: in the state, in the address, and in the library.
        label: on the page.
        start: as text; empty where nothing need be stated.
        low: left end of the slider; typing may go beyond both ends.
        high: right end of the slider.
        log: the slider is even in the logarithm.
        whole: whole numbers only.
        hint: one line below the field.
    """

    name: str
    label: str
    start: str
    low: float
    high: float
    log: bool = True
    whole: bool = False
    hint: str = ""


PARAMETERS: dict[str, Parameter] = {
    p.name: p
    for p in (
        Parameter("noise_multiplier", "Noise multiplier", "1.1", 0.3, 30.0, hint="× clip"),
        Parameter("sample_rate", "Sample rate", "0.01", 1e-5, 1.0, hint="per step"),
        Parameter("steps", "Steps", "1000", 1, 100_000, whole=True, hint="noisy updates"),
        Parameter("dataset_size", "Records", "60000", 100, 10_000_000, whole=True),
        Parameter("batch_size", "Batch size", "600", 1, 100_000, whole=True),
        Parameter("epochs", "Epochs", "10", 0.1, 1000, hint="passes over the data"),
        Parameter("releases", "Releases", "1", 1, 10_000, whole=True),
        Parameter("dimension", "Dimension", "", 1, 10_000_000, whole=True, hint="unknown directions"),
        Parameter("relaxed_probability", "Direction unknown", "0.5", 0.0, 1.0, log=False, hint="how often"),
        Parameter("susceptibility", "Susceptibility K", "", 0.1, 1e6, hint="empty: average record"),
        Parameter("gradient_change", "Gradient change", "0.2", 0.001, 2.0, hint="in clip norms"),
    )
}

_PEOPLE = ("records_per_user",) if "records_per_user" in {f.name for f in fields(DPSGD)} else ()
if _PEOPLE:
    PARAMETERS["records_per_user"] = Parameter(
        "records_per_user", "Records per person", "", 1, 100, whole=True, hint="protected together"
    )

MECHANISMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "dpsgd": (
        "DP-SGD",
        ("noise_multiplier", "sample_rate", "steps", "dataset_size", "batch_size", "epochs", "dimension", *_PEOPLE),
    ),
    "gaussian": ("Gaussian", ("noise_multiplier", "releases", "dimension")),
    "laplace": ("Laplace", ("noise_multiplier", "releases")),
    "ledger": ("File", ()),
}
"""Label and parameters, by name."""


@dataclass(frozen=True, slots=True)
class Attacker:
    """Who attacks.

    Attributes:
        label: in people's words, as on the certificate.
        short: the same on a chip, below the name.
        kind: the adversary.
        parameter: the number that it takes, or None.
    """

    label: str
    short: str
    kind: type[Adversary]
    parameter: str | None = None

    def make(self, value: float | None) -> Adversary:
        """The adversary; None leaves its number to its own default."""
        return self.kind() if self.parameter is None or value is None else self.kind(**{self.parameter: value})


_SHORT = {
    "worst-case": "any attacker",
    "relaxed": "direction unknown",
    "mixed": "direction may be known",
    "membership": "two candidates",
    "membership-game": "knows the population",
    "attribute": "wants one field",
}
"""On chips, below the name; an attacker that is not listed here shows its title."""


def _attacker(name: str, kind: type[Adversary]) -> Attacker:
    typed = [p for p in parameters_of(kind) if p.typeable]
    for p in typed[:1]:
        whole = p.kind is int
        PARAMETERS.setdefault(p.name, Parameter(p.name, p.name.replace("_", " "), "", 1.0, 100.0, whole=whole))
    return Attacker(kind.title, _SHORT.get(name, kind.title), kind, typed[0].name if typed else None)


ATTACKERS: dict[str, Attacker] = {name: _attacker(name, kind) for name, kind in everybody().items()}
"""By ``Adversary.name``, in the order of the page. The worst case is always among those asked."""

TARGETS: dict[str, tuple[str, str | None, str, str]] = {
    "advantage": ("Advantage", None, "0.1", "curves"),
    "bayes-security": ("Bayes security", None, "0.9", "curves"),
    "tpr": ("Found (TPR)", "at false alarms (FPR)", "0.01", "roc"),
    "epsilon": ("Epsilon", "at delta", "1", "profile"),
    "success": ("Right guesses", "at prior", "0.55", "guesses"),
    "mu": ("mu", None, "1", "curves"),
}
"""Label, label of the place or None, first value, and the view that shows it; by name on the command line."""

PLACES = {"tpr": "0.001", "epsilon": "1e-5", "success": "0.5"}
"""Where a target is read unless something else is said."""

UNKNOWNS: dict[str, tuple[str, str, Unknown]] = {
    "noise-multiplier": ("Noise", "least noise multiplier", NoiseMultiplier()),
    "sample-rate": ("Rate", "largest sample rate", SampleRate()),
    "steps": ("Steps", "most steps", Steps()),
    "batch-size": ("Batch", "largest batch", BatchSize()),
}
"""Label, what the answer is called, and the type; by name on the command line."""
