"""Correlated noise: the sensitivity against every pattern, and what follows from it.

Theorems: RETICENT:participation-sensitivity, RETICENT:block-sampling, DENISOV2022:Theorem 2.1.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import dp_event
from scipy import fft, linalg, signal, sparse, special

from reticent.adversaries import Relaxed
from reticent.calibration import Advantage, NoiseMultiplier
from reticent.calibration.solve import calibrate
from reticent.interop.dp_events import from_dp_event, to_dp_event
from reticent.kernel.accountants import compose
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.mechanisms import MatrixMechanism, strategies
from tests.laws.experiments import Experiment
from tests.mechanisms.strategies import read, rows

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE


def patterns(steps: int, most: int, separation: int) -> list[tuple[int, ...]]:
    """All of them, by going through all subsets."""
    found = []
    for size in range(1, most + 1):
        for chosen in itertools.combinations(range(steps), size):
            if all(b - a >= separation for a, b in itertools.pairwise(chosen)):
                found.append(chosen)
    return found


def strategies_of(rng: np.random.Generator, steps: int) -> list[tuple[str, int | None]]:
    positive = np.tril(rng.uniform(0.1, 1.0, (steps, steps)))
    mixed = np.tril(rng.normal(size=(steps, steps))) + np.eye(steps)
    rising = ",".join(f"{x:.6f}" for x in rng.uniform(0.1, 1.0, 4))
    return [
        ("identity", None),
        ("prefix", None),
        ("square-root", None),
        ("square-root", 3),
        ("bisr", None),
        ("bisr", 2),
        ("bisr", 3),
        ("lambda-cgd=0.8", None),
        ("tree", None),
        ("1,0.5,0.5,0.2", None),
        (rising, None),
        ("1,0,0.9", None),
        (rows(positive), None),
        (rows(mixed), None),
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("most", "separation"), [(1, 1), (2, 1), (3, 1), (3, 2), (2, 3), (4, 3), (9, 4)])
def test_the_sensitivity_by_going_through_every_pattern(seed: int, most: int, separation: int) -> None:
    rng, steps = np.random.default_rng(seed), 8
    for strategy, bands in strategies_of(rng, steps):
        asked = strategies.Strategy(strategy, bands, steps)
        c = strategies.matrix(asked)
        claimed = strategies.sensitivity(asked, most, separation)
        along = [float(np.linalg.norm(c[:, p].sum(axis=1))) for p in patterns(steps, most, separation)]
        bound = [float(np.sqrt(np.abs(c.T @ c)[np.ix_(p, p)].sum())) for p in patterns(steps, most, separation)]
        for pattern in patterns(steps, most, separation):  # directions of their own
            u = rng.normal(size=(len(pattern), 3))
            u /= np.linalg.norm(u, axis=1, keepdims=True)
            assert np.linalg.norm(c[:, pattern] @ u) <= claimed.proven * (1.0 + 1e-12)
        assert max(along) <= claimed.proven * (1.0 + 1e-12)
        assert claimed.attained <= max(along) * (1.0 + 1e-12)
        if np.all(c.T @ c >= 0.0):
            assert claimed.attained <= max(bound) * (1.0 + 1e-12)
        if claimed.attained == claimed.proven:
            assert claimed.proven == pytest.approx(max(along), rel=1e-12, abs=0)
        exact = strategy in (*strategies.NAMES[:-1], "lambda-cgd=0.8", "1,0.5,0.5,0.2") or most == 1
        assert not exact or claimed.attained == pytest.approx(claimed.proven, rel=1e-12, abs=0)


def test_the_square_root_multiplies_to_prefix_sums() -> None:
    root = strategies.matrix(strategies.Strategy("square-root", None, 30))
    assert root @ root == pytest.approx(np.tril(np.ones((30, 30))), abs=1e-12)


INVERSES: tuple[tuple[str, int | None, tuple[Fraction, ...]], ...] = (
    ("bisr", 1, (Fraction(1),)),
    ("bisr", 2, (Fraction(1), Fraction(-1, 2))),
    ("bisr", 4, (Fraction(1), Fraction(-1, 2), Fraction(-1, 8), Fraction(-1, 16))),
    ("lambda-cgd=0.75", None, (Fraction(1), Fraction(-3, 4))),
    ("lambda-cgd=0", None, (Fraction(1),)),
    ("lambda-cgd=1", None, (Fraction(1), Fraction(-1))),
)


@pytest.mark.parametrize(("name", "bands", "inverse"), INVERSES)
def test_strategies_that_are_named_by_their_inverse(
    name: str, bands: int | None, inverse: tuple[Fraction, ...]
) -> None:
    """By elimination in fractions, for which nothing is rounded; and as rows, which knows no names."""
    steps, most, apart = 40, 5, 7
    column: list[Fraction] = []
    for step in range(steps):
        known = sum((inverse[i] * column[step - i] for i in range(1, min(step + 1, len(inverse)))), Fraction(0))
        column.append(Fraction(step == 0) - known)
    total = [sum((column[t - i * apart] for i in range(most) if t >= i * apart), Fraction(0)) for t in range(steps)]
    asked = strategies.Strategy(name, bands, steps)
    claimed = strategies.sensitivity(asked, most, apart)
    square = sum(x * x for x in total)
    assert Fraction(claimed.attained) ** 2 <= square <= Fraction(claimed.proven) ** 2
    assert claimed.attained > claimed.proven * (1.0 - 1e-12)
    c = np.array([[float(column[t - s]) if t >= s else 0.0 for s in range(steps)] for t in range(steps)])
    as_rows = strategies.sensitivity(strategies.Strategy(rows(c), None, steps), most, apart)
    assert as_rows.proven >= claimed.proven * (1.0 - 1e-12)
    assert as_rows.attained == pytest.approx(claimed.proven, rel=1e-12, abs=0)
    assert strategies.bandwidth(asked) == (1 if len(inverse) == 1 else steps)


@pytest.mark.parametrize("bands", [2, 3, 5, 30, 199, 200])
def test_the_inverse_of_banded_roots_never_increases(bands: int) -> None:
    """What the page proves for all; the inverse by binomials, the strategy by solving."""
    first = [(-1.0) ** i * special.binom(0.5, i) for i in range(bands)]
    c = linalg.inv(linalg.toeplitz([*first, *[0.0] * (200 - bands)], np.zeros(200)))[:, 0]
    assert np.all(np.diff(c) < 0.0)
    assert np.all(c > 0.0)
    assert strategies.matrix(strategies.Strategy("bisr", bands, 200))[:, 0] == pytest.approx(c, rel=1e-9, abs=0)


@pytest.mark.parametrize("bands", [1000, 50_000])
def test_a_hundred_thousand_steps(bands: int) -> None:
    claimed = strategies.sensitivity(strategies.Strategy("bisr", bands, 100_000), 100, 1000)
    root = np.append(1.0, -np.cumprod(np.append(0.5, 1.0 - 1.5 / np.arange(2, bands))))  # another recursion
    damped = fft.irfft(1.0 / fft.rfft(root * 0.9999 ** np.arange(bands), 2**20))  # and another division
    c = damped[:100_000] / 0.9999 ** np.arange(100_000)
    total = sum(np.append(np.zeros(s), c[: 100_000 - s]) for s in range(0, 100_000, 1000))
    assert claimed.proven == pytest.approx(float(np.linalg.norm(total)), rel=1e-6, abs=0)
    assert claimed.proven < claimed.attained * (1.0 + 1e-6)


@pytest.mark.parametrize(
    ("strategy", "bands", "noise", "error"),
    [
        ("identity", None, 6.305, 199.4),
        ("bisr", 10, 8.811, 52.8),
        ("square-root", 10, 8.439, 76.3),
        ("lambda-cgd=0.95", None, 20.19, 37.8),
    ],
)
def test_which_strategy_the_page_recommends(strategy: str, bands: int | None, noise: float, error: float) -> None:
    """Root mean square of the rows of A C^-1 Z, A the prefix sums: the noise of the running sums of gradients."""
    run = MatrixMechanism(noise, 2000, strategy, bands=bands, participations=10, separation=200)
    assert WorstCase().assess(run, ADD).measure(epsilon_at_delta, 1e-5).value == pytest.approx(2.0, rel=1e-3, abs=0)
    first = strategies.coefficients(strategies.Strategy(strategy, bands, 2000))
    assert first is not None
    sums = signal.lfilter([1.0], first, np.ones(2000))  # the first column of A C^-1, which is Toeplitz
    squares = np.cumsum(sums**2)
    assert noise * np.sqrt(np.mean(squares)) == pytest.approx(error, rel=1e-3, abs=0)


@pytest.mark.parametrize("strategy", ["bisr", "lambda-cgd=0.9", "square-root", "prefix"])
def test_a_cut_pattern_is_summed_as_a_whole_one(strategy: str) -> None:
    """With as many participations as fit, one fewer step than the next would need."""
    asked = strategies.Strategy(strategy, None, 60)
    whole, cut = (strategies.sensitivity(asked, most, 10) for most in (6, 5))
    c = strategies.matrix(asked)
    assert whole.proven == pytest.approx(np.linalg.norm(c[:, ::10].sum(axis=1)), rel=1e-12, abs=0)
    assert cut.proven == pytest.approx(np.linalg.norm(c[:, :50:10].sum(axis=1)), rel=1e-12, abs=0)


def test_banded_blocks_are_sampled_steps() -> None:
    run = MatrixMechanism(2.0, 103, "1,0.5,0.25", separation=4, sample_rate=0.1)
    norm = np.sqrt(1.0 + 0.25 + 0.0625)
    assert run.equivalent() == DPSGD(2.0 / norm, 0.1, 26)
    truth = compose(run, ADD)
    expected = compose(DPSGD(2.0 / norm, 0.1, 26), ADD)
    assert advantage(truth.pessimistic) == pytest.approx(advantage(expected.pessimistic), rel=1e-6, abs=0)
    assert advantage(truth.optimistic) <= advantage(truth.pessimistic)
    assert advantage(truth.optimistic) > 0.98 * advantage(truth.pessimistic)


def test_a_block_of_two_rows_by_quadrature() -> None:
    """Two steps, one turn: the record moves (1, c) with probability p, seen in the plane."""
    noise, rate, c = 1.3, 0.3, 0.7
    moved = {(0.0, 0.0): 1.0 - rate, (1.0, c): rate}
    seen = Experiment.noisy({(0.0, 0.0): 1.0}, moved, noise, 1201).delta(0.0)
    claimed = compose(MatrixMechanism(noise, 2, f"1,{c}", separation=2, sample_rate=rate), ADD)
    assert advantage(claimed.pessimistic) == pytest.approx(seen, rel=1e-4, abs=0)


def test_the_relaxed_attacker_has_one_shift() -> None:
    run = MatrixMechanism(5.0, 64, "square-root", bands=8, participations=4, separation=16)
    shift = run.sensitivity().proven / 5.0
    for dimension in (1, 40):
        mine = Relaxed(dimension=dimension).assess(run, ADD).measure(advantage)
        plain = Relaxed(dimension=dimension).assess(Gaussian(1.0 / shift, dimension=dimension), ADD)
        assert mine.value == pytest.approx(plain.measure(advantage).value, rel=1e-9, abs=0)
        assert mine.value < WorstCase().assess(run, ADD).measure(advantage).lower


def test_what_cannot_be_is_refused_in_one_line() -> None:
    for wrong in (
        {"strategy": "nonsense"},
        {"strategy": "0,1"},
        {"strategy": "[[1],[2]]"},
        {"strategy": "[[1],[2,0]]", "steps": 2},
        {"strategy": "1,0.5,0.2", "sample_rate": 0.1, "separation": 2},
        {"sample_rate": 0.1, "participations": 2},
        {"strategy": "tree", "bands": 3},
        {"participations": 0},
        {"strategy": "lambda-cgd"},
        {"strategy": "lambda-cgd=1.01"},
        {"strategy": "lambda-cgd=-0.5"},
        {"strategy": "lambda-cgd=nan"},
        {"strategy": "lambda-cgd=much"},
        {"strategy": "lambda-cgd=0.5", "bands": 2},
        {"strategy": "bisr=2"},
        {"strategy": "bisr", "bands": 2, "sample_rate": 0.1, "separation": 4},
        {"strategy": "banded="},
        {"strategy": "banded=0"},
        {"strategy": "banded=2", "bands": 2},
        {"strategy": "banded=2:1x7"},
        {"strategy": "banded=2:1x7,0.5x2"},
        {"strategy": "banded=2:1x9,0.5x-1"},
        {"strategy": "banded=2:-1x8"},
        {"strategy": "banded=2:nanx8"},
        {"strategy": "banded=2:1x7,much"},
        {"strategy": "banded=3", "sample_rate": 0.1, "separation": 2},
    ):
        with pytest.raises(ParameterError):
            MatrixMechanism(**{"noise_multiplier": 1.0, "steps": 8, **wrong})
    with pytest.raises(UnsupportedError, match="2048"):
        MatrixMechanism(1.0, 5000, "0.5,1", participations=3, separation=1).sensitivity()


def test_a_strategy_from_a_file(tmp_path: Path) -> None:
    c = np.tril(np.arange(1.0, 10.0).reshape(3, 3))
    np.save(tmp_path / "c.npy", c)
    np.savetxt(tmp_path / "c.csv", c, delimiter=",")
    for name in ("c.npy", "c.csv"):
        asked = strategies.Strategy(read(tmp_path / name, 3), None, 3)
        assert strategies.matrix(asked) == pytest.approx(c, rel=1e-12, abs=0)
    for wrong in (np.ones((3, 3)), np.ones(0), np.ones((3, 2)), None):
        np.save(tmp_path / "c.npy", wrong) if wrong is not None else (tmp_path / "c.npy").unlink()
        with pytest.raises(ParameterError, match="strategy_file"):
            read(tmp_path / "c.npy")


def test_a_long_strategy_from_a_file_by_its_structure(tmp_path: Path) -> None:
    named = MatrixMechanism(1.0, 300, "bisr", bands=3, participations=3, separation=100)
    matrix = strategies.matrix(strategies.Strategy("bisr", 3, 300))
    np.save(tmp_path / "matrix.npy", matrix)
    sparse.save_npz(tmp_path / "matrix.npz", sparse.coo_array(matrix))
    np.savetxt(tmp_path / "row.csv", matrix[:, :1].T, delimiter=",")
    np.save(tmp_path / "flat.npy", matrix[:, 0])
    for name in ("matrix.npy", "matrix.npz", "row.csv", "flat.npy"):
        text = read(tmp_path / name, 300)
        run = MatrixMechanism(1.0, 300, text, participations=3, separation=100)
        assert run.sensitivity().proven == pytest.approx(named.sensitivity().proven, rel=1e-12, abs=0)
        assert MatrixMechanism(1.0, 100_000, text, participations=3, separation=100).sensitivity().proven > 1.0
    for steps in (200, 400):  # what the coefficients are beyond the rows is not known
        with pytest.raises(ParameterError, match="a lower triangular matrix with a row for each step"):
            read(tmp_path / "matrix.npy", steps)
    for entry in (0.5, 0.0):
        matrix[250, 10] = entry
        np.save(tmp_path / "other.npy", matrix)
        sparse.save_npz(tmp_path / "other.npz", sparse.coo_array(matrix))
        norms = np.linalg.norm(matrix, axis=0)
        for name in ("other.npz", "other.npy"):
            text = read(tmp_path / name, 300)
            assert MatrixMechanism(1.0, 300, text).sensitivity().proven == pytest.approx(norms.max(), rel=1e-9, abs=0)
            with pytest.raises(ParameterError, match="separation must be at least 300, the bands"):
                MatrixMechanism(1.0, 300, text, participations=2, separation=100).sensitivity()


def of_chance(steps: int, bands: int) -> tuple[np.ndarray, sparse.dia_array]:
    """The columns of a banded matrix, shape (steps, bands), and the matrix itself."""
    held = np.random.default_rng(steps).uniform(0.1, 1.0, (steps, bands))
    held[np.add.outer(np.arange(steps), np.arange(bands)) >= steps] = 0.0
    diagonals = [held[: steps - d, d] for d in range(bands)]
    return held, sparse.diags_array(diagonals, offsets=-np.arange(bands), shape=(steps, steps))


@pytest.mark.parametrize(("most", "separation"), [(1, 1), (2, 3), (3, 4), (4, 3)])
def test_bands_and_norms_of_a_file_against_every_pattern(most: int, separation: int, tmp_path: Path) -> None:
    held, matrix = of_chance(11, 3)
    sparse.save_npz(tmp_path / "c.npz", matrix)
    text = read(tmp_path / "c.npz", 11)
    run = MatrixMechanism(1.0, 11, text, participations=most, separation=separation)
    c = matrix.toarray()
    truth = max(float(np.linalg.norm(c[:, p].sum(axis=1))) for p in patterns(11, most, separation))
    assert run.sensitivity().proven == pytest.approx(truth, rel=1e-9, abs=0)
    assert strategies.bandwidth(strategies.Strategy(text, None, 11)) == 3
    norms = strategies.column_norms(strategies.Strategy(text, None, 11))
    assert norms == pytest.approx(np.linalg.norm(held, axis=1), rel=1e-9, abs=0)


@pytest.mark.parametrize("kind", [float, np.float32])
def test_columns_of_norm_one_are_one_number(kind: type, tmp_path: Path) -> None:
    """Of 20,000, as JAX-Privacy and others keep them, in single precision too; k uses are the root of k."""
    held, matrix = of_chance(20_000, 8)
    sparse.save_npz(tmp_path / "c.npz", (matrix / np.linalg.norm(held, axis=1)).astype(kind))
    text = read(tmp_path / "c.npz", 20_000)
    assert len(text) < 40
    run = MatrixMechanism(1.0, 20_000, text, participations=49, separation=400)
    assert 7.0 * (1.0 - 1e-12) <= run.sensitivity().proven <= 7.0 * (1.0 + 1e-6)
    named = MatrixMechanism(1.0, 20_000, "banded=8", separation=8, sample_rate=0.1)
    assert named.equivalent() == DPSGD(1.0, 0.1, 2_500)


def test_norms_that_are_too_many_for_a_text_are_rounded_up() -> None:
    norms = np.random.default_rng(0).uniform(1.0, 1.1, 12_000)
    text = strategies.banded(4, norms)
    held = strategies.column_norms(strategies.Strategy(text, None, 12_000))
    assert text.count(",") < 10_000
    assert np.all(norms <= held)
    assert np.all(held <= norms * 1.1)
    assert np.mean(held / norms) < 1.01


def test_files_that_hold_no_such_matrix_are_refused(tmp_path: Path) -> None:
    _, matrix = of_chance(140, 3)
    for wrong in (matrix.T, matrix - sparse.diags_array(matrix.diagonal()), matrix.tocsr()[:, :100], matrix * np.nan):
        sparse.save_npz(tmp_path / "c.npz", wrong)
        with pytest.raises(ParameterError, match="a lower triangular matrix with a row for each step"):
            read(tmp_path / "c.npz")
    for write in (lambda p: np.savez(p, a=np.ones(3)), lambda p: p.write_bytes(b"nothing")):
        write(tmp_path / "c.npz")
        with pytest.raises(ParameterError, match=r"or the \.npz of a sparse matrix"):
            read(tmp_path / "c.npz")


def test_a_rounded_coefficient_is_no_news() -> None:
    assert len(MatrixMechanism(1.0, 300, "bisr", bands=3, participations=3, separation=100).notes) == 1
    assert len(MatrixMechanism(1.0, 300, "1,-0.5,0.9", participations=3, separation=1).notes) == 2


def test_it_is_calibrated() -> None:
    run = MatrixMechanism(4.0, 6, rows(np.tril(np.ones((6, 6)))), participations=2, separation=3)
    assert run.sensitivity().attained <= run.sensitivity().proven
    found = calibrate(run, NoiseMultiplier(), Advantage(0.1))
    assert found.achieved.value <= 0.1
    assert found.slack < 1e-4
    longer = MatrixMechanism(1.0, 512, "tree")
    noise = calibrate(longer, NoiseMultiplier(), Advantage(0.1)).value
    assert noise == pytest.approx(np.sqrt(10.0) / 0.25132, rel=1e-3, abs=0)


def test_events() -> None:
    tree = from_dp_event(dp_event.SingleEpochTreeAggregationDpEvent(3.0, 20))
    assert tree == MatrixMechanism(3.0, 20, "tree")
    trees = from_dp_event(dp_event.SingleEpochTreeAggregationDpEvent(3.0, [4, 20, 8]))
    assert trees == tree
    assert to_dp_event(tree).noise_multiplier == pytest.approx(3.0 / np.sqrt(5.0))
