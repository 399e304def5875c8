"""What was released, from the numbers that people know."""

from __future__ import annotations

from reticent import _check
from reticent.errors import ParameterError
from reticent.keywords import hinting
from reticent.mechanisms import DPSGD, Sampler
from reticent.mechanisms.dpsgd import steps_in
from reticent.mechanisms.units import Unit


@hinting
def dpsgd(
    *,
    noise_multiplier: float,
    batch_size: int | None = None,
    dataset_size: int | None = None,
    epochs: float | None = None,
    sample_rate: float | None = None,
    steps: int | None = None,
    max_grad_norm: float = 1.0,
    num_parameters: int | None = None,
    sampler: Sampler | str = Sampler.POISSON,
    records_per_user: int | None = None,
    unit: Unit | str = Unit.RECORD,
    uses_per_epoch: int | None = None,
    max_batch_size: int | None = None,
    draws_per_step: int | None = None,
) -> DPSGD:
    """DP-SGD from what people know: sizes and epochs, or rate and steps.

    Args:
        noise_multiplier: noise standard deviation over ``max_grad_norm``, on the sum, >= 0.
        batch_size: expected records per batch; with ``dataset_size`` it gives the rate.
        dataset_size: number of training records.
        epochs: passes over the data, > 0: ``1 / sample_rate`` steps each, rounded up for the whole run.
        sample_rate: probability of one record per step, instead of the sizes.
        steps: noisy updates, instead of ``epochs``.
        max_grad_norm: clip norm (L2).
        num_parameters: trained parameters, if known.
        sampler: how batches are drawn: ``"poisson"``, ``"truncated-poisson"``, ``"fixed-size"``,
            ``"random-allocation"``, ``"allocated-once"``, ``"shuffled"`` or ``"cyclic"``; docs/theory/sampling.md.
        records_per_user: the most records of one person; then all of them are protected together.
        unit: ``"record"``, or ``"client"`` for federated learning: then sizes count clients, a step is a round, and
            whole clients are protected.
        uses_per_epoch: with ``"random-allocation"``, in how many steps of an epoch a record is used; None is 1.
        max_batch_size: with ``"truncated-poisson"``, the size at which batches are cut.
        draws_per_step: with ``"poisson"``, independent draws that are summed before the noise of one step.

    Raises:
        ParameterError: the rate or the steps are given twice or not at all, or a number is outside its domain.

    Example:
        >>> import reticent as rt
        >>> run = rt.dpsgd(noise_multiplier=1.1, batch_size=64, dataset_size=6400, epochs=10)
        >>> run.sample_rate, run.steps
        (0.01, 1000)
    """
    rate = _rate(sample_rate, batch_size, dataset_size)
    kind = _check.member(Sampler, sampler=sampler)
    return DPSGD(
        noise_multiplier=noise_multiplier,
        sample_rate=rate,
        steps=_steps(steps, epochs, rate, kind),
        max_grad_norm=max_grad_norm,
        num_parameters=num_parameters,
        batch_size=batch_size,
        dataset_size=dataset_size,
        sampler=kind,
        records_per_user=records_per_user,
        unit=_check.member(Unit, unit=unit),
        uses_per_epoch=uses_per_epoch,
        max_batch_size=max_batch_size,
        draws_per_step=draws_per_step,
    )


def _rate(sample_rate: float | None, batch_size: int | None, dataset_size: int | None) -> float:
    if batch_size is None or dataset_size is None:
        if sample_rate is None:
            raise ParameterError("sample_rate", None, "given, or batch_size and dataset_size", shown=False)
        return _check.rate(sample_rate=sample_rate)
    rate = _check.count(batch_size=batch_size) / _check.count(dataset_size=dataset_size)
    if rate > 1.0:
        raise ParameterError("batch_size", batch_size, f"at most dataset_size, {dataset_size}")
    if sample_rate is not None and abs(_check.rate(sample_rate=sample_rate) - rate) > 0.01 * rate:
        raise ParameterError("sample_rate", sample_rate, f"batch_size / dataset_size = {rate:g}, or left out")
    return rate if sample_rate is None else sample_rate


def _steps(steps: int | None, epochs: float | None, rate: float, sampler: Sampler) -> int:
    if epochs is None:
        if steps is None:
            raise ParameterError("steps", None, "given, or epochs", shown=False)
        return _check.count(steps=steps)
    if steps is not None:
        raise ParameterError("epochs", epochs, "left out where steps are given", shown=False)
    return steps_in(epochs, rate, sampler)
