"""What was released, from the numbers that people know."""

from __future__ import annotations

from reticent import _check
from reticent.errors import ParameterError
from reticent.keywords import hinting
from reticent.mechanisms import DPSGD
from reticent.mechanisms.units import Unit
from reticent.samplers import INDEPENDENT, Sampler


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
    sampler: Sampler | str = INDEPENDENT,
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
        epochs: passes over the data, > 0: ``1 / sample_rate`` steps each, rounded up for the whole run; or as many
            whole batches as fit, where a record is in one step of each pass.
        sample_rate: probability of one record per step, instead of the sizes.
        steps: noisy updates, instead of ``epochs``.
        max_grad_norm: clip norm (L2).
        num_parameters: trained parameters, if known.
        sampler: how batches are drawn, by name or as one of ``reticent.samplers``; docs/theory/sampling.md.
        records_per_user: the most records of one person; then all of them are protected together.
        unit: ``"record"``, or ``"client"`` for federated learning: then sizes count clients, a step is a round, and
            whole clients are protected.
        uses_per_epoch: where chance puts records into steps, in how many steps of an epoch a record is used.
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
    fields = DPSGD.resolved({**locals(), "unit": _check.member(Unit, unit=unit)})
    for name, instead in (("sample_rate", "batch_size and dataset_size"), ("steps", "epochs")):
        if fields[name] is None:
            raise ParameterError(name, None, f"given, or {instead}", shown=False)
    return DPSGD(**fields)
