"""Attribute inference on a trained model, compared with the guess that needs no model.

The attacker knows all of a record but one attribute, and the label. *With the model*: the value that makes prior
times the model's probability of the label largest (Fredrikson et al. 2014). *Without the model*: the most probable
value given everything else, learned from other people's records. Only what the first gains over the second is due
to the model; and only what it gains on members beyond what it gains on others is due to having been trained on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.special import log_softmax
from scipy.stats import binomtest

from reticent import _check
from reticent.data import ColumnGroup
from reticent.errors import ParameterError, UnsupportedError
from reticent.training.rundir import load_run

_FEWEST_BACKGROUND = 20
_SMALLEST_SCALE = 0.1
_SUREST = 30.0
"""No guess is surer than e^-30: a probability that rounds to zero would silence the model."""


@dataclass(frozen=True, eq=False)
class AttributeGuesses:
    """Which records' attribute was guessed correctly.

    Attributes:
        attribute: which one.
        with_model: True where the attack on the model was right, one per record.
        without_model: True where the guess without the model was right, same records.
    """

    attribute: str
    with_model: np.ndarray
    without_model: np.ndarray

    @property
    def success(self) -> tuple[float, float]:
        """Shares of correct guesses: with the model, without it."""
        return float(self.with_model.mean()), float(self.without_model.mean())

    @property
    def gain(self) -> float:
        """What the model adds to the share of correct guesses; negative if it misleads."""
        return self.success[0] - self.success[1]

    @property
    def p_value(self) -> float:
        """Exact sign test (McNemar) of "the model helps no more often than it misleads"."""
        helped = int((self.with_model & ~self.without_model).sum())
        misled = int((~self.with_model & self.without_model).sum())
        return 1.0 if helped + misled == 0 else float(binomtest(helped, helped + misled, alternative="greater").pvalue)


@dataclass(frozen=True, eq=False)
class AttributeAttack:
    """The attack on members, and the same attack on others.

    Attributes:
        members: training records.
        others: test records that the attacker did not learn from.
    """

    members: AttributeGuesses
    others: AttributeGuesses


def attack_attribute(run: Path, attribute: str, *, records: int = 1000, seed: int = 0) -> AttributeAttack:
    """Attack a finished run.

    Half of the test records are the attacker's own; the others and the training records are attacked.

    Args:
        run: a directory written by ``reticent train``.
        attribute: a name of the data set's column groups, with at least two values.
        records: members, and others, at most.
        seed: of the choice of records.

    Raises:
        ParameterError: there is no such attribute.
        UnsupportedError: too few test records to learn a guess from.
        ArtifactError, DataError: the run or its data is incomplete or corrupt.
    """
    loaded = load_run(run)
    dataset, model = loaded.dataset(), loaded.model()
    group = dataset.group(attribute)
    rng = np.random.default_rng(seed)
    test = rng.permutation(dataset.test)
    own, others = test[: len(test) // 2], test[len(test) // 2 :][: _check.count(records=records)]
    members = rng.permutation(dataset.train)[:records]

    @torch.no_grad()
    def answer(features: np.ndarray) -> np.ndarray:
        return model(torch.from_numpy(features.reshape(-1, *dataset.feature_shape))).numpy()

    def flat(which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return dataset.features[which].reshape(len(which), -1), dataset.labels[which]

    known = flat(own)
    return AttributeAttack(*(guess_attribute(answer, group, *known, *flat(which)) for which in (members, others)))


def guess_attribute(
    answer: Callable[[np.ndarray], np.ndarray],
    group: ColumnGroup,
    known_features: np.ndarray,
    known_labels: np.ndarray,
    features: np.ndarray,
    labels: np.ndarray,
) -> AttributeGuesses:
    """Guess one attribute of every record, with and without the model.

    Args:
        answer: the model: flat features (n, columns) to logits (n, classes).
        known_features, known_labels: the attacker's own records, with the attribute.
        features, labels: the attacked records; their attribute is used only to judge the guesses.

    Raises:
        ParameterError: the attribute has only one value.
        UnsupportedError: there are too few own records.
    """
    if len(group.values) < 2:
        raise ParameterError("attribute", group.name, "an attribute with at least two values")
    if len(known_features) < _FEWEST_BACKGROUND:
        raise UnsupportedError(f"only {len(known_features)} test records to learn a guess of {group.name!r} from")
    columns = list(group.columns)
    truth, known = _value_of(features[:, columns], group), _value_of(known_features[:, columns], group)
    classes = np.unique(np.concatenate([known_labels, labels]))
    rest, known_rest = np.delete(features, columns, axis=1), np.delete(known_features, columns, axis=1)
    prior = _learned(known_rest, known, rest, len(group.values))
    informed = _learned(
        np.hstack([known_rest, known_labels[:, None] == classes]),
        known,
        np.hstack([rest, labels[:, None] == classes]),
        len(group.values),
    )
    posterior = prior + _label_log_probability(answer, group, features, labels)
    return AttributeGuesses(group.name, posterior.argmax(axis=1) == truth, informed.argmax(axis=1) == truth)


def _value_of(encoded: np.ndarray, group: ColumnGroup) -> np.ndarray:
    """Index of the nearest value of the group for each record."""
    return ((encoded[:, None, :] - group.encoded[None]) ** 2).sum(axis=2).argmin(axis=1)


def _learned(known: np.ndarray, value: np.ndarray, rest: np.ndarray, values: int) -> np.ndarray:
    """Log probability of each value given the rest, by logistic regression; values never seen get next to none."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    unseen = np.log(0.5 / len(value))
    out = np.full((len(rest), values), unseen)
    present = np.unique(value)
    if len(present) == 1:
        out[:, present[0]] = 0.0
        return out
    # A constant column, so that frequencies are learned where the attribute is all there is.
    known, rest = (np.hstack([part, np.ones((len(part), 1))]) for part in (known, rest))
    scale = np.maximum(known.std(axis=0), _SMALLEST_SCALE)
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # a guess need not be a maximum to be judged
        fitted = LogisticRegression(max_iter=500).fit(known / scale, value)
        learned = fitted.predict_log_proba(rest / scale)
    out[:, fitted.classes_] = np.maximum(learned, -_SUREST)
    return out


def _label_log_probability(
    answer: Callable[[np.ndarray], np.ndarray], group: ColumnGroup, features: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """log p(label | record with each value put in), shape (records, values)."""
    out = np.empty((len(features), len(group.values)))
    for place, encoded in enumerate(group.encoded):
        changed = features.copy()
        changed[:, list(group.columns)] = encoded
        out[:, place] = log_softmax(answer(changed).astype(np.float64), axis=1)[np.arange(len(labels)), labels]
    return out
