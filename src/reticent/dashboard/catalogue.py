"""What the page can set: mechanisms with their parameters, attackers with theirs, targets, and what may be asked.

Mechanisms and attackers are those of the registries, what may be asked are the fields of the request. Parameters that
people often set have a label, a first value and a slider here; others get theirs from the field of the dataclass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, dataclass, fields, replace
from enum import StrEnum
from itertools import chain
from typing import Any

from reticent.calibration.targets import TARGETS as KINDS
from reticent.kernel import registry
from reticent.kernel.adversaries import Adversary, everybody
from reticent.kernel.adversaries.base import standard_adversaries
from reticent.kernel.mechanisms import DPSGD, MECHANISMS, Mechanism
from reticent.kernel.registry import parameters_of
from reticent.kernel.samplers import SAMPLERS
from reticent.pairs.runs import RUNS
from reticent.verbs.request import spelling_of
from reticent.verbs.risks import Asking


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
        text: a word, or several numbers: it has no slider.
        folded: among what few people set.
    """

    name: str
    label: str
    start: str
    low: float
    high: float
    log: bool = True
    whole: bool = False
    hint: str = ""
    text: bool = False
    folded: bool = False


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
        Parameter("flip_probability", "Flip probability", "0.25", 0.001, 0.5),
        Parameter("max_batch_size", "Cut at", "800", 1, 100_000, whole=True, hint="most records in a batch"),
        Parameter("uses_per_epoch", "Uses per epoch", "", 1, 100, whole=True, hint="of one record"),
        Parameter(
            "draws_per_step", "Draws per step", "", 1, 100, whole=True, hint="summed before the noise", folded=True
        ),
        Parameter("records_per_user", "Records per person", "", 1, 100, whole=True, hint="protected together"),
        Parameter("mean_runs", "Runs on average", "10", 1, 1000, hint="of which the best is released"),
        Parameter("shape", "Shape", "0", -0.9, 5.0, log=False, hint="1 is geometric"),
        Parameter("dimension", "Dimension", "", 1, 10_000_000, whole=True, hint="unknown directions", folded=True),
        Parameter("known_share", "Known share", "", 0.0, 1.0, log=False, hint="of a squared gradient, as in a bias"),
        Parameter("relaxed_probability", "Direction unknown", "0.5", 0.0, 1.0, log=False, hint="how often"),
        Parameter("susceptibility", "Susceptibility K", "", 0.1, 1e6, hint="empty: average record"),
        Parameter("contraction", "Contraction", "0.99", 0.5, 1.0, log=False, hint="per update"),
        Parameter("gradient_change", "Gradient change", "0.2", 0.001, 2.0, hint="in clip norms"),
    )
}


OWN = "own"
"""Where a choice is left to the request, or to the attacker."""
CHOICES: dict[str, dict[str, str]] = {}
"""What can be chosen for a field, and what the page calls it, by name: filled below."""
HELP: dict[str, str] = {}
"""One sentence about each of these fields."""


def _choice(name: str, help: str, words: Iterable[Any]) -> str:
    """The name of a field whose words are chosen."""
    usual = help.partition("default: ")[2].removesuffix(".") or "not said"
    HELP[name] = help
    CHOICES[name] = {OWN: usual, **{str(word): str(word).replace("-", " ") for word in words}}
    return name


def _field(known: registry.Parameter) -> str:
    """The name of a field of the page, which is made where no label is written above."""
    if issubclass(known.kind, StrEnum):
        return _choice(known.name, known.help, known.kind)
    whole, ends = known.kind is int, known.search
    low, high = (ends.low, ends.high) if ends else (1, 1000) if whole else (0.01, 10.0)
    usual = "" if known.default is None and not known.required else str(known.default or (1 if whole else 0.1))
    label, text = known.name.replace("_", " ").capitalize(), known.kind is str
    made = Parameter(
        known.name, label, known.start or usual, low, high, whole=whole, hint=known.help if text else "", text=text
    )
    return PARAMETERS.setdefault(known.name, made).name


@dataclass(frozen=True, slots=True)
class Released:
    """What can be released.

    Attributes:
        label: on the page.
        kind: the mechanism; None is a file.
        parameters: names of its fields on the page.
    """

    label: str
    kind: type[Mechanism] | None = None
    parameters: tuple[str, ...] = ()


OF_SAMPLERS: dict[str, tuple[str, ...]] = {
    name: tuple(_field(p) for p in parameters_of(kind) if p.name != "batches_per_epoch")
    for name, kind in SAMPLERS.items()
}
"""Fields of the page that a sampler has, by name."""
ONE_RUN = "one"
"""Where no selection is asked for."""
OF_RUNS: dict[str, dict[str, str]] = {
    name: {p.option.replace("-", "_"): p.name for p in parameters_of(law)} for name, law in RUNS.items()
}
"""Fields of the page that a law of the number of runs has, with its own names for them, by law."""
_OF_DPSGD = ("noise_multiplier", "sample_rate", "steps", "dataset_size", "batch_size", "epochs", "dimension")


def _is_shown(known: registry.Parameter) -> bool:
    """Whether the page asks for it: not where the common field begins with something else than what is left out."""
    common = PARAMETERS.get(known.name)
    return known.required or common is None or common.start in ("", str(known.default))


def _released() -> dict[str, Released]:
    """DP-SGD first, then each mechanism whose parameters can be typed, and a file for all others."""
    found = {
        DPSGD.name: Released(
            "DP-SGD", DPSGD, (*_OF_DPSGD, *dict.fromkeys(chain(*OF_SAMPLERS.values())), "records_per_user")
        )
    }
    for name, kind in MECHANISMS.items():
        if kind is not DPSGD and all(p.kind in (int, float, str) for p in parameters_of(kind)):
            label = kind.title or name.replace("-", " ").capitalize()
            found[name] = Released(label, kind, tuple(_field(p) for p in parameters_of(kind) if _is_shown(p)))
    return found | {"ledger": Released("File", parameters=("dimension",))}


RELEASED: dict[str, Released] = _released()
"""By ``Mechanism.name``, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Attacker:
    """Who attacks.

    Attributes:
        label: in people's words, as on the certificate.
        short: the same on a chip, below the name.
        kind: the adversary.
        fields: what it takes that can be typed or chosen.
    """

    label: str
    short: str
    kind: type[Adversary]
    fields: tuple[registry.Parameter, ...] = ()


def _attacker(kind: type[Adversary]) -> Attacker:
    taken = tuple(p for p in parameters_of(kind) if p.kind in (int, float) or issubclass(p.kind, StrEnum))
    for known in taken:
        _field(known if known.default else replace(known, default=None))  # left empty it is the attacker's own
    return Attacker(str(kind.title), kind.short or str(kind.title), kind, taken)


_ASKED = {**everybody(), **{who.name: type(who) for who in standard_adversaries(contraction=1.0)}}
ATTACKERS: dict[str, Attacker] = {name: _attacker(kind) for name, kind in _ASKED.items()}
"""By ``Adversary.name``, in the order of the page. The worst case is always among those asked."""

TARGETS: dict[str, tuple[str, str, str]] = {
    "advantage": ("Advantage", "0.1", "curves"),
    "bayes-security": ("Bayes security", "0.9", "curves"),
    "tpr": ("Found (TPR)", "0.02", "roc"),
    "ppv": ("Accusations", "0.4", "roc"),
    "epsilon": ("Epsilon", "1", "profile"),
    "success": ("Right guesses", "0.55", "guesses"),
    "secret": ("A secret", "0.01", "roc"),
    "recovered": ("Recovered", "0.2", "roc"),
    "mu": ("mu", "1", "curves"),
}
"""Label, first value, and the view that shows it; by name on the command line."""
PLACES = {name: "; ".join(example for _, example in KINDS[name].places) for name in TARGETS if KINDS[name].places}
"""Where a target is read unless something else is said."""

UNKNOWNS: dict[str, tuple[str, str]] = {
    "noise-multiplier": ("Noise", "least noise multiplier"),
    "sample-rate": ("Rate", "largest sample rate"),
    "steps": ("Steps", "most steps"),
    "batch-size": ("Batch", "largest batch"),
    "mean-runs": ("Runs", "runs on average"),
}
"""Label, and what the answer is called; by name on the command line."""

ASKED = {one.name: one for one in fields(Asking) if spelling_of(one).typed is not None}
"""What may be asked about any release: the fields of the request that one word says."""


def _asked(known: Field[Any]) -> None:
    """A field of the request is made one of the page."""
    name, help = known.name, known.metadata["help"]
    if words := (spelling_of(known).schema or {}).get("enum", ()):
        _choice(name, help, words)
    else:
        label = name.replace("_", " ").capitalize()
        PARAMETERS[name] = Parameter(name, label, _FIRST.get(name, ""), 0, 0, hint=help, text=True, folded=True)


_FIRST = {"prior": "0.5; 0.1"}
for _each in ASKED.values():
    _asked(_each)
