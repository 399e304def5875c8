"""What ``reticent audit`` reads: options as types, score sources, and the claims under test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from reticent import _check
from reticent.auditing import (
    Bonferroni,
    Design,
    Given,
    Guesses,
    NormalScores,
    Ranks,
    Scores,
    Split,
    ThresholdRule,
    import_lira,
    import_privacy_meter,
    load_scores,
)
from reticent.auditing.files import check_score_path
from reticent.cli._ledger import check_run_folder
from reticent.cli._options import adversaries_of, told_apart
from reticent.cli._refusals import leave_out
from reticent.curves import GaussianTradeOff, TradeOff
from reticent.errors import ArtifactError, ParameterError, needing
from reticent.io.outputs import refuse_existing
from reticent.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.text import one_of
from reticent.verbs.releases import Release
from reticent.verbs.risks import Assess

if TYPE_CHECKING:
    from reticent.tasks import Engine

_FORMATS = ("auto", "run", "scores", "lira", "privacy-meter")
_ENGINES = ("local", "dask", "ray")
_LIRA_ATTACKS = ("lira", "lira-offline")
_SCORED = " for scores, which an attack has given already"
_NO_RELEASE = " unless --noise-multiplier or --claim is given"


def parse_rule(text: str, seed: int) -> ThresholdRule:
    """``normal-scores``, ``ranks:0.01,0.1``, ``given:1.5``, ``bonferroni:1,2`` or ``split:0.3`` as a type.

    Raises:
        ParameterError: it is none of these.
    """
    if text == "normal-scores":
        return NormalScores()
    name, _, rest = text.partition(":")
    try:
        values = tuple(float(part) for part in rest.split(","))
    except ValueError:
        raise ParameterError("rule", text, "a name and numbers, such as ranks:0.01,0.1") from None
    try:
        return _rule(name, values, text, seed)
    except ParameterError as error:
        raise ParameterError(
            "rule", text, f"{name} with {error.allowed}" if error.name != "rule" else error.allowed
        ) from None


def _rule(name: str, values: tuple[float, ...], text: str, seed: int) -> ThresholdRule:
    match name, values:
        case "ranks", levels:
            return Ranks(levels)
        case "bonferroni", candidates:
            return Bonferroni(candidates)
        case "given", (threshold,):
            return Given(threshold)
        case "split", (fraction,):
            return Split(fraction, np.random.default_rng(seed))
    raise ParameterError("rule", text, "normal-scores or ranks:FPR,.. or given:T or bonferroni:T,.. or split:FRACTION")


def parse_guesses(text: str) -> Guesses:
    """``100,100`` as a type.

    Raises:
        ParameterError: it is not two whole numbers.
    """
    members, _, others = text.partition(",")
    if not (members.isdecimal() and others.isdecimal()):
        raise ParameterError("guesses", text, "two whole numbers MEMBERS,NON_MEMBERS")
    return Guesses(int(members), int(others))


def check_before_work(
    confidence: float,
    delta: float,
    fprs: Sequence[float],
    against_mu: Sequence[float],
    seed: int,
    save: Path | None,
    page: Path | None,
) -> None:
    """Refuse now what would be refused after an attack that may have taken hours.

    Raises:
        ParameterError: a number is outside its domain.
        ArtifactError: the scores could not be saved, or the page not be written.
    """
    _check.open_fraction(confidence=confidence)
    _check.open_fraction(delta=delta)
    for fpr in fprs:
        _check.open_fraction(fpr=fpr)
    for mu in against_mu:
        _check.non_negative(against_mu=mu)
    _check.seed(seed=seed)
    if save is not None:
        refuse_existing(check_score_path(save))
    if page is not None:
        from reticent.certificates.audit_page import audit_files  # matplotlib takes a while to import

        audit_files(page)


def check_fit(kind: str, attack: str, target: int, release: Mapping[str, Any]) -> None:
    """Refuse options that this kind of source would ignore.

    Raises:
        ParameterError: a run is given another release than its own, or finished scores an attack.
    """
    if kind == "run":
        leave_out(release, " for a run, whose ledger says what it released")
    if kind in ("scores", "privacy-meter") and attack != "loss":
        leave_out({"attack": attack}, _SCORED)
    if kind in ("run", "scores") and target != 0:
        leave_out({"target": target}, " unless the source is a LiRA or Privacy Meter folder")


def check_unused(given: Mapping[str, Any], options: Sequence[click.Option]) -> None:
    """Refuse options of attacks, none of which runs where the scores are there already.

    Raises:
        ParameterError: one of them is not as it is by default.
    """
    names = {str(one.name): one.default for one in options}
    leave_out({name: given[name] for name, default in names.items() if given[name] != default}, _SCORED)


def kind_of(source: Path, stated: str) -> str:
    """What lies at ``source``: run, scores, lira or privacy-meter; recognised by its files unless stated.

    Raises:
        ParameterError: ``stated`` is no format.
        ArtifactError: nothing lies there.
    """
    if stated not in _FORMATS:
        raise ParameterError("format", stated, one_of(stated, _FORMATS))
    if stated != "auto":
        return stated
    if not source.exists():
        raise ArtifactError(f"{source} does not exist: give a run directory or a score file")
    if source.is_file():
        return "scores"
    check_run_folder(source)
    if (source / "ledger.json").exists() or (source / "manifest.json").exists():
        return "run"
    if (source / "report").is_dir():
        return "privacy-meter"
    if not any(source.glob("experiment*")):
        known = "a run (ledger.json), nor of Privacy Meter (report/), nor of LiRA (experiment_0_of_16/, ...)"
        raise ArtifactError(f"{source} is neither the folder of {known}")
    return "lira"


def read_scores(source: Path, kind: str, attack: str, target: int, design: Design | None) -> Scores:
    """Scores of a file or of another tool's folder; a LiRA folder is attacked with ``lira`` or ``lira-offline``."""
    if kind == "scores":
        return load_scores(source, design)
    if kind == "privacy-meter":
        return import_privacy_meter(source, target)
    from reticent.attacks.shadow_scores import lira_offline, lira_online  # keep the statistics free of attacks

    shadows = import_lira(source)
    models = len(shadows.keep)
    if not 0 <= target < models:
        raise ParameterError("target", target, f"the number of one of {models} models, from 0")
    if attack not in (*_LIRA_ATTACKS, "loss"):
        raise ParameterError("attack", attack, one_of(attack, _LIRA_ATTACKS))
    compare = lira_online if attack == "lira" else lira_offline
    others = np.arange(models) != target
    score = np.mean(
        [compare(values[target], values[others], shadows.keep[others]) for values in np.moveaxis(shadows.values, 2, 0)],
        axis=0,
    )
    member = shadows.keep[target]
    name = "lira" if attack == "lira" else "lira-offline"
    return Scores(score[member], score[~member], {"attack": name, "models": models, "target": target})


def engine_of(name: str, address: str | None, workers: int) -> Engine:
    """``--engine``, ``--address`` and ``--workers`` as a type."""
    from reticent.tasks import Dask, Local, Ray

    if name not in _ENGINES:
        raise ParameterError("engine", name, one_of(name, _ENGINES))
    if name == "local":
        leave_out({"address": address}, " for --engine local")
        return Local(workers)
    if name == "ray":
        return Ray(address)
    if address is None:
        raise ParameterError("address", address, "the scheduler's tcp://host:port for --engine dask")
    return Dask(address)


def ledger_mechanism(source: Path) -> Mechanism:
    """What a finished run says it ran."""
    with needing("auditing a run", "train"):
        import reticent.training.run  # noqa: F401
    from reticent.training import load_run

    return load_run(source).ledger.mechanism()


def mechanism_of(
    claim: Path | None,
    noise_multiplier: float | None,
    sample_rate: float | None,
    steps: int | None,
    dimension: int | None,
) -> Mechanism | None:
    """The release that scores are tested against, of a file or of options; None if none was described."""
    if dimension is not None:
        _check.count(dimension=dimension)
    if claim is not None:
        said = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate, "steps": steps}
        leave_out(said, ": the file of --claim says it")
        return Release.of(claim).mechanism
    if noise_multiplier is None:
        leave_out({"sample_rate": sample_rate, "steps": steps, "dimension": dimension}, _NO_RELEASE)
        return None
    if sample_rate is None and steps is None:
        return Gaussian(noise_multiplier, dimension=1 if dimension is None else dimension)
    if sample_rate is None or steps is None:
        missing, given = ("sample_rate", "--steps") if sample_rate is None else ("steps", "--sample-rate")
        raise ParameterError(missing, None, f"given together with {given}", shown=False)
    return DPSGD(noise_multiplier, sample_rate, steps, num_parameters=dimension)


def claims_of(
    mechanism: Mechanism | None, against_mu: Sequence[float], given: Mapping[str, Any]
) -> Mapping[str, TradeOff]:
    """Curves to test, by name; the worst case comes with every attacker that ``--against`` names."""
    claims: dict[str, TradeOff] = {}
    against = given["against"]
    if mechanism is None and against:
        raise ParameterError(
            "noise_multiplier", None, "given, or --claim, so that --against has a release", shown=False
        )
    if mechanism is None:
        leave_out(given, _NO_RELEASE)
    else:
        names = against or ["worst-case"]
        _, attackers = told_apart(type(mechanism), names, given)
        who = adversaries_of(names, attackers, option="against")
        how = {name: given[name] for name in ("neighbouring", "method")}
        for result in Assess.of(release=mechanism, adversary=who, **how).answer():
            claims[f"{result.adversary.name} ({result.neighbouring})"] = result.curve
    for mu in against_mu:
        claims[f"mu={mu!r}"] = GaussianTradeOff(mu)
    return claims
