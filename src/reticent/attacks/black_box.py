"""Attacks that see what a trained model answers: baselines, LiRA and RMIA.

Members are training records of the run, non-members its test records. They share one model, so their scores
may depend on each other (``Design.POPULATION``). Shadow models are trained on random parts, as large as the run's
training data, of all its records.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import log_expit

from reticent.attacks.base import Attack, AttackSettings
from reticent.attacks.shadow_scores import lira_offline, lira_online, needed_sides, rmia
from reticent.attacks.signals import scaled_confidence
from reticent.auditing.scores import Design, MetaValue, Scores
from reticent.data import Dataset
from reticent.kernel.errors import ArtifactError, UnsupportedError
from reticent.tasks import Store

if TYPE_CHECKING:
    from reticent.training.rundir import Run

_BATCH = 4096
_OFFLINE_SHARE = 0.3
"""How far p_out is trusted as an estimate of p in offline RMIA; the RMIA paper fits it per data set between 0 and 1."""


@dataclass(frozen=True)
class _Target:
    """The attacked model on all records of its data set: training records first, then test records.

    Attributes:
        confidence: scaled confidence in the true label.
        certainty: log of the largest class probability, which needs no label.
        member, non_member: positions of the records to be scored.
    """

    run: Run
    dataset: Dataset
    pool: np.ndarray
    confidence: np.ndarray
    certainty: np.ndarray
    member: np.ndarray
    non_member: np.ndarray


def _open(path: Path, settings: AttackSettings, spare: bool = False) -> _Target:
    """Answer every record and choose those to score; ``spare`` keeps half of the test records aside."""
    import torch

    from reticent.training.rundir import load_run

    run = load_run(path)
    dataset = run.dataset()
    if len(dataset.test) < 2:
        raise UnsupportedError(f"{path}: the data set has no test records, so there are no non-members")
    pool = np.concatenate([dataset.train, dataset.test])
    logits = _answer(run, dataset.features[pool])
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(0,)))
    available = len(dataset.test) // 2 if spare else len(dataset.test)
    member = _some(rng, len(dataset.train), settings.records)
    non_member = len(dataset.train) + _some(rng, len(dataset.test), min(settings.records, available))
    probabilities = torch.log_softmax(torch.from_numpy(logits).double(), dim=1).numpy()
    confidence = scaled_confidence(logits, dataset.labels[pool])
    return _Target(run, dataset, pool, confidence, probabilities.max(axis=1), member, non_member)


def _some(rng: np.random.Generator, available: int, wanted: int) -> np.ndarray:
    return np.sort(rng.permutation(available)[:wanted])


def _answer(run: Run, features: np.ndarray) -> np.ndarray:
    import torch

    model = run.model()
    with torch.no_grad():
        return torch.cat([model(batch) for batch in torch.from_numpy(features.copy()).split(_BATCH)]).numpy()


class LossAttack(Attack):
    """Members have a smaller loss (Yeom et al. 2018): the baseline that needs nothing but the label."""

    name: ClassVar[str] = "loss"
    summary: ClassVar[str] = "loss of the record's label"
    spare: ClassVar[bool] = False

    def scores(self, run: Path, settings: AttackSettings) -> Scores:
        target = _open(run, settings, self.spare)
        values = self._values(target, np.concatenate([target.member, target.non_member]), settings)
        meta: dict[str, MetaValue] = {"attack": self.name, "run": str(run), "seed": settings.seed}
        members = len(target.member)
        return Scores(values[:members], values[members:], meta, Design.POPULATION)

    def _values(self, target: _Target, scored: np.ndarray, settings: AttackSettings) -> np.ndarray:
        return log_expit(target.confidence)[scored]


class ConfidenceAttack(LossAttack):
    """Models are surer about members (Salem et al. 2019): needs no label."""

    name: ClassVar[str] = "confidence"
    summary: ClassVar[str] = "largest class probability, whatever the label"

    def _values(self, target: _Target, scored: np.ndarray, settings: AttackSettings) -> np.ndarray:
        return target.certainty[scored]


class LiraOnline(LossAttack):
    """See ``shadow_scores.lira_online``."""

    name: ClassVar[str] = "lira"
    summary: ClassVar[str] = "likelihood ratio from shadow models with and without the record"
    online: ClassVar[bool] = True

    def _values(self, target: _Target, scored: np.ndarray, settings: AttackSettings) -> np.ndarray:
        who, rule = ("online LiRA", lira_online) if self.online else ("offline LiRA", lira_offline)
        return rule(*_compared(target, settings, scored, who, online=self.online))


class LiraOffline(LiraOnline):
    """See ``shadow_scores.lira_offline``."""

    name: ClassVar[str] = "lira-offline"
    summary: ClassVar[str] = "confidence against shadow models without the record, one-sided"
    online: ClassVar[bool] = False


class Rmia(LossAttack):
    """See ``shadow_scores.rmia``; half of the test records serve as the population."""

    name: ClassVar[str] = "rmia"
    summary: ClassVar[str] = "likelihood ratio against population records, shadow models with and without the record"
    spare: ClassVar[bool] = True
    offline_share: ClassVar[float | None] = None

    def _values(self, target: _Target, scored: np.ndarray, settings: AttackSettings) -> np.ndarray:
        others = np.setdiff1d(np.arange(len(target.dataset.train), len(target.pool)), target.non_member)
        seen = np.concatenate([scored, others])
        compared = _compared(target, settings, seen, "RMIA", online=self.offline_share is None)
        population = np.arange(len(scored), len(seen))
        return rmia(*compared, population, offline_share=self.offline_share)[: len(scored)]


class RmiaOffline(Rmia):
    """RMIA with shadow models that never saw the record."""

    name: ClassVar[str] = "rmia-offline"
    summary: ClassVar[str] = "likelihood ratio against population records, shadow models without the record"
    offline_share: ClassVar[float | None] = _OFFLINE_SHARE


def _compared(
    target: _Target, settings: AttackSettings, seen: np.ndarray, who: str, *, online: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidence in the records ``seen`` of the target and of shadow models, and in which of these they were.

    Models are trained, or loaded, once it is sure that the records have models on the sides needed.
    """
    from reticent.attacks.shadow import ShadowPlan, inclusion, train_shadow_models

    path = target.run.path
    store = Store(settings.work or path.with_name(f"{path.name}-attack"))
    if store.read_manifest() is not None and not settings.resume:
        raise ArtifactError(
            f"{store.root} holds an earlier attack: --resume goes on with it, --work names another place"
        )
    # The noise that ran, not the risk target that it was calibrated for.
    ran = {"noise_multiplier": target.run.ledger.equal_steps().noise_multiplier, "target": None}
    plan = ShadowPlan(
        target.run.config.model_copy(update=ran), settings.models, len(target.dataset.train), settings.seed
    )
    needed_sides(inclusion(plan, len(target.pool))[:, seen], who, online=online)
    described = {"run": str(path), "data": target.dataset.content_hash}
    described |= {name: getattr(plan, name) for name in ("models", "train_size", "seed")}
    features, labels = (part[target.pool] for part in (target.dataset.features, target.dataset.labels))
    shadow = train_shadow_models(plan, features, labels, store, settings, described)
    return target.confidence[seen], shadow.confidence[:, seen], shadow.included[:, seen]
