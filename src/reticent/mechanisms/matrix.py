"""Correlated noise: the matrix mechanism (DP-FTRL)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from zipfile import BadZipFile

import numpy as np

from reticent.kernel import checks, pairs
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.base import OF_A_START, Mechanism, check_noise, check_rate
from reticent.kernel.mechanisms.dpsgd import DPSGD
from reticent.kernel.mechanisms.gaussian import Gaussian
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.registry import Parameter, described
from reticent.kernel.text import digits
from reticent.mechanisms import strategies
from reticent.mechanisms.strategies import Sensitivity, Strategy
from reticent.samplers.allocated_once import AllocatedOnce


@dataclass(frozen=True, slots=True, repr=False)
class MatrixMechanism(Mechanism):
    """Sums with correlated noise: DP-FTRL, matrix mechanism.

    Step t releases row t of C X + Z: X has the sum of clipped contributions of each step as its rows, C is the
    strategy, Z is independent normal noise. The trainer multiplies by the inverse of C, so the noise of X is C^-1 Z.

    Attributes:
        noise_multiplier: standard deviation of Z over the clip norm, >= 0; not over the sensitivity of C.
        steps: number of noisy updates, >= 1.
        strategy: C. ``identity`` (the noise of DP-SGD), ``prefix`` (all ones), ``square-root`` (the Toeplitz root of
            ``prefix``), ``bisr`` (the banded inverse square root), ``lambda-cgd=0.9`` (takes back so much of the last
            noise), ``tree`` (DP-FTRL), Toeplitz coefficients ("1,0.5,0.375"), the rows of a lower triangular matrix
            ("[[1],[0.5,1]]"), or the bands and the norms of the columns of one ("banded=4", of norm 1, or
            "banded=4:1x90,0.5x10").
        bands: keep this many coefficients of a Toeplitz strategy, of the inverse of ``bisr``; None keeps all.
        participations: the most steps in which one record takes part; 1 is a single epoch.
        separation: fewest steps from one participation to the next. Under block sampling the number of blocks.
        sample_rate: below 1 the steps draw from blocks in turn: probability of a record when it is its block's turn.
        bins: balls in bins: each record is in one of so many batches, by one hidden draw, and batch i is used in the
            steps i, i + bins, i + 2 bins, ... None draws nothing.

    Raises:
        ParameterError: a field is outside its domain, or contradicts the strategy.
    """

    noise_multiplier: float = field(metadata=described("Noise over the clip norm, before the strategy is undone."))
    steps: int = field(metadata=described("Number of noisy updates."))
    strategy: str = field(
        default="identity",
        metadata=described(
            "identity, prefix, square-root, bisr, lambda-cgd=0.9, tree, banded=4, coefficients (1,0.5) or rows "
            "[[1],[0.5,1]]."
        ),
    )
    bands: int | None = field(
        default=None, metadata=described("Keep this many coefficients of the strategy, of bisr those of its inverse.")
    )
    participations: int = field(default=1, metadata=described("Most steps in which one record takes part."))
    separation: int = field(
        default=1, metadata=described("Fewest steps from one participation to the next; with sampling, the blocks.")
    )
    sample_rate: float = field(default=1.0, metadata=described("Probability of a record at its block's turn."))
    bins: int | None = field(
        default=None, metadata=described("Batches in turn; each record is in one of them by a hidden draw.")
    )

    name: ClassVar[str] = "matrix"
    title: ClassVar[str] = "Correlated noise"
    sentence: ClassVar[Message | str] = Message("mechanism.matrix")
    extras: ClassVar[tuple[Parameter, ...]] = (
        Parameter.in_place("strategy_file", str, "Lower triangular strategy as .npy, .npz or .csv, not as a name."),
    )

    def __post_init__(self) -> None:
        check_noise(self.noise_multiplier)
        for name in ("steps", "participations", "separation"):
            checks.count(**{name: getattr(self, name)})
        if self.bands is not None and (checks.count(bands=self.bands) and self._strategy.dense):
            raise ParameterError("bands", self.bands, "left out unless the strategy is Toeplitz", shown=False)
        check_rate(self.sample_rate)
        if self.steps > 10**8:
            raise ParameterError("steps", self.steps, "at most 1e8")
        self._check_strategy()

    def _check_strategy(self) -> None:
        if not isinstance(self.strategy, str):
            raise ParameterError("strategy", self.strategy, "text")
        strategies.check(self._strategy)
        if self.sample_rate == 1.0 and self.bins is None:
            return
        name, drawn = ("separation", self.separation) if self.bins is None else ("bins", checks.count(bins=self.bins))
        if self.participations != 1:
            raise ParameterError("participations", self.participations, "left out where records are drawn", shown=False)
        if self.bins is not None and (self.sample_rate < 1.0 or self.separation != 1):
            name = "sample_rate" if self.sample_rate < 1.0 else "separation"
            raise ParameterError(name, getattr(self, name), "left out where bins are given")
        width = strategies.bandwidth(self._strategy)
        if width > drawn:
            wanted = f"at least {width}, the bands of the strategy: no amplification is proven for fewer"
            raise ParameterError(name, drawn, wanted)

    @property
    def work(self) -> float:
        """Steps for each participation; for a dense strategy their square."""
        return strategies.work(self._strategy, *self._pattern)

    @property
    def _pattern(self) -> tuple[int, int]:
        """Participations of one record, and the fewest steps between two; one of them under block sampling."""
        if self.bins is not None:
            return -(-self.steps // self.bins), self.bins
        return (1, self.steps) if self.sample_rate < 1.0 else (self.participations, self.separation)

    @property
    def _bins_apart(self) -> int:
        """How many bins count: as many as are the bands apart."""
        return (self.bins or 1) // strategies.bandwidth(self._strategy)

    @property
    def _strategy(self) -> Strategy:
        return Strategy(self.strategy, self.bands, self.steps)

    def sensitivity(self) -> Sensitivity:
        """How far one record of norm 1 can move the release; of one participation under block sampling.

        By RETICENT:participation-sensitivity.
        """
        return strategies.sensitivity(self._strategy, *self._pattern)

    def equivalent(self) -> Gaussian | DPSGD:
        """What has the same dominating pairs: one Gaussian release, or DP-SGD with a step for each turn of a block.

        With bins an epoch of random allocation to those that count.
        """
        noise = self.noise_multiplier / self.sensitivity().proven
        if self.bins is not None:
            return _in_one_of(self._bins_apart, noise)
        if self.sample_rate == 1.0:
            return Gaussian(noise)
        return DPSGD(noise, self.sample_rate, -(-self.steps // self.separation))

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """One release, or a sampled step for each turn; attained: the first block, moved by its own columns.

        With bins by RETICENT:binned-allocation.
        """
        if self.bins is not None:
            return self._in_bins(neighbouring, attained=attained)
        sampled, noise, size = self.sample_rate < 1.0, self.noise_multiplier, self.sensitivity()
        turns = -(-self.steps // self.separation) if sampled else 1
        counts = Counter({size.attained if attained else size.proven: turns})
        if attained and sampled and noise > 0.0:
            counts = Counter(strategies.column_norms(self._strategy)[:: self.separation].tolist())
        own = "RETICENT:block-sampling" if sampled else "RETICENT:participation-sensitivity"
        drawn = partial(pairs.poisson_gaussian, sample_rate=self.sample_rate, neighbouring=neighbouring)
        return tuple(
            Part(drawn(noise / norm), count, ("DENISOV2022:Theorem 2.1", own)) for norm, count in counts.most_common(16)
        )

    def _in_bins(self, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """Attained: all bins apart, and as long as the shortest, by a record that is there or not."""
        run: Mechanism = self.equivalent()
        if attained:
            bins, energies = self.bins or 1, strategies.column_norms(self._strategy) ** 2
            least = float(np.bincount(np.arange(self.steps) % bins, energies, bins).min()) * (1.0 - 1e-9)
            if not strategies.positive(self._strategy) or least == 0.0 or self.noise_multiplier == 0.0:
                return ()
            run = _in_one_of(bins, self.noise_multiplier / least**0.5)
            neighbouring = Neighbouring.ADD_REMOVE
        parts = run.parts_under(neighbouring, attained=attained)
        return tuple(replace(part, theorems=(*part.theorems, "RETICENT:binned-allocation")) for part in parts)

    @classmethod
    def resolved(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The strategy may come from a file.

        Raises:
            ParameterError: both are given, or the file holds no strategy.
        """
        fields = dict(given)
        file = fields.pop("strategy_file", None)
        if file is not None:
            if fields.get("strategy") not in (None, "identity"):
                raise ParameterError("strategy_file", file, "left out where a strategy is given", shown=False)
            fields["strategy"] = read_strategy(Path(file), fields.get("steps"))
        return fields

    @property
    def notes(self) -> tuple[Message | str, ...]:
        apart = Figure(str(self.separation))
        if self.sample_rate < 1.0:
            return (Message("note.blocks", blocks=apart, modulus=apart),)
        if self.bins is not None:
            counted = Figure(str(self._bins_apart))
            return (Message("note.bins", bins=Figure(str(self.bins)), apart=counted),)
        size = self.sensitivity()
        ends = Figure(digits(size.attained, 6, up=False)), Figure(digits(size.proven, 6, up=True))
        loose = (
            [Message("note.sensitivity", lower=ends[0], upper=ends[1])]
            if size.proven > 1.000001 * size.attained
            else []
        )
        if self.participations == 1 or self.separation >= self.steps:
            return (Message("note.participation-once"), *loose)
        return (Message("note.participation", steps=Figure(str(self.participations)), apart=apart), *loose)

    def _stated(self) -> tuple[str, ...]:
        pattern = "participation-pattern" if self.bins is None else AllocatedOnce.condition.key
        return (*Mechanism._stated(self), pattern, "planned-steps", "public-divisor")

    def _unseen(self) -> tuple[str, ...]:
        places = "kept-places" if self.bins is None else "hidden-draws"
        return (*Mechanism._unseen(self), places, *OF_A_START)


def _in_one_of(bins: int, noise: float) -> DPSGD:
    """An epoch of so many steps, of which each record is in one."""
    return DPSGD(noise, 1.0 / bins, bins, sampler=AllocatedOnce(bins))


def read_strategy(path: Path, steps: int | None = None) -> str:
    """A strategy from a file, .npy or comma-separated text: a lower triangular matrix, or one row of coefficients.

    A Toeplitz matrix of as many rows as there are steps is read as its coefficients. Another sparse matrix, .npz as
    ``scipy.sparse.save_npz`` writes it, and another of more than 128 rows are read as their bands and column norms.

    Args:
        path: of the file.
        steps: of the run; None where they are not known yet.

    Raises:
        ParameterError: the file cannot be read, or holds no such matrix.
    """
    from scipy import sparse  # 30 ms, for whoever has such a file

    from reticent.io import strict

    try:
        match path.suffix:
            case ".npz":
                values = sparse.load_npz(path).astype(float)
            case ".npy":
                values = np.load(path, allow_pickle=False)
            case _:
                values = np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        wanted = f"a readable .npy or .csv file, or the .npz of a sparse matrix ({type(error).__name__})"
        raise ParameterError("strategy_file", str(path), wanted) from None
    if sparse.issparse(values):
        return _sparse(sparse.coo_array(values), path, steps)
    numbers = values.dtype.kind in "fiu" and values.size > 0
    if numbers and (values.ndim == 1 or (values.ndim == 2 and len(values) == 1)):
        return _coefficients(values)
    square = numbers and values.ndim == 2 and values.shape[0] == values.shape[1]
    if not square or np.any(np.triu(values, 1) != 0.0):
        raise ParameterError(
            "strategy_file", str(path), "a lower triangular matrix of numbers, or a row of coefficients"
        )
    if len(values) == steps and np.array_equal(values[1:, 1:], values[:-1, :-1]):
        return _coefficients(values[:, 0])
    if len(values) > 128:
        return _sparse(sparse.coo_array(values), path, steps)
    return strict.dumps([[float(x) for x in row[: index + 1]] for index, row in enumerate(values)])


def _sparse(found: Any, path: Path, steps: int | None) -> str:
    """A lower triangular matrix by its bands and the norms of its columns."""
    found.sum_duplicates()
    found.eliminate_zeros()
    rows, columns = found.coords
    square = found.shape[0] == found.shape[1] and steps in (None, found.shape[0]) and np.all(np.isfinite(found.data))
    if not square or np.any(rows < columns) or np.count_nonzero(rows == columns) < found.shape[0]:
        wanted = "a lower triangular matrix with a row for each step, and no zeros on its diagonal"
        raise ParameterError("strategy_file", str(path), wanted)
    below = np.bincount(rows - columns)
    first = found.tocsc()[:, [0]].toarray()[: len(below), 0]
    whole = steps is not None and np.all((below == 0) | (below == steps - np.arange(len(below))))
    if whole and len(below) <= strategies.MOST_ENTRIES and np.array_equal(found.data, first[rows - columns]):
        return _coefficients(first)
    norms = np.sqrt(np.bincount(columns, found.data**2, found.shape[0]))
    return strategies.banded(int(np.max(rows - columns)) + 1, norms)


def _coefficients(values: np.ndarray) -> str:
    return ",".join(repr(float(x)) for x in np.trim_zeros(values.ravel(), "b"))
