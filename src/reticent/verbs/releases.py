"""What was released, however it is said: the numbers that people know, a ledger, a run, or a file of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reticent.kernel import checks
from reticent.kernel.adversaries.from_ledger import witness_of
from reticent.kernel.adversaries.witness import Witness
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.keywords import hinting
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.samplers import INDEPENDENT, Sampler
from reticent.verbs.request import Spelling, path_said


@dataclass(frozen=True)
class Release:
    """What was released, and what is known of the run.

    Attributes:
        mechanism: the release; of a ledger, the safe reading of what ran.
        ledger: that saw it; None where only parameters are known.
        warnings: what a reader of the ledger must know, as its certificate lists it; text by name.
        said: the path or the JSON document that says it, where one was given.
    """

    mechanism: Mechanism
    ledger: Witness | None = None
    warnings: Mapping[str, str] = field(default_factory=dict, hash=False)
    said: Any = field(default=None, compare=False)

    def written(self) -> Any:
        """A path or a document: the public form of a ledger, from which the same follows; the record of a mechanism.

        Raises:
            ParameterError: what saw it is no ledger that can be written down.
        """
        from reticent.io.strict import portable
        from reticent.mechanisms.codec import mechanism_record

        if self.said is not None:
            return self.said
        if self.ledger is None:
            return _short(mechanism_record(self.mechanism))
        from reticent.certificates.document.ledger_rules import refuse_contradictions

        public = getattr(self.ledger, "public", None)
        if not callable(public):
            hint = "mechanisms, ledgers, runs or files of these; rt.assess answers what was seen by something else"
            raise ParameterError("mechanisms", type(self.ledger).__name__, hint)
        known: Any = self.ledger
        refuse_contradictions(known)
        return portable(public())

    @classmethod
    def of(cls, what: Any, name: str = "mechanism") -> Release:
        """A mechanism, a ledger, a run, a watched loop, the path of one, or what such a file holds.

        Args:
            name: of the argument, for errors.

        Raises:
            ArtifactError: a file or document is neither a ledger nor a mechanism nor a DpEvent, or its ledger cannot be
                accounted.
            ParameterError: it is none of these.
            UnsupportedError: an event has no counterpart.
        """
        if isinstance(what, Release):
            return what
        if isinstance(what, (str, Path)):
            from reticent.interop.documents import read_release

            path = path_said(name, what)
            return cls._read(read_release(path / "ledger.json" if path.is_dir() else path), str(what), str(what))
        if isinstance(what, dict):
            from reticent.interop.documents import release_from

            return cls._read(release_from(what, name), what, name)
        ledger = witness_of(what)
        return cls(mechanism_of(what, name), ledger, _warnings(ledger))

    def best_of(self, runs: Any) -> Mechanism:
        """The release, or the best of so many runs of it; of one run where None is given."""
        if runs is None:
            return self.mechanism
        from reticent.mechanisms import Selection

        return Selection(self.mechanism, runs)

    @classmethod
    def _read(cls, found: Any, said: Any, where: str) -> Release:
        if isinstance(found, Mechanism):
            return cls(found, said=said)
        try:
            mechanism = found.mechanism()
        except ParameterError as error:
            raise ArtifactError(f"{where}: {error}") from None
        return cls(mechanism, witness_of(found), _warnings(found), said)


def mechanism_of(what: Any, name: str = "mechanism") -> Mechanism:
    """A mechanism, or that of a ledger, a run or a watched loop, or of a file that holds one.

    Raises:
        ArtifactError: it is a path, and no ledger, mechanism or DpEvent lies there.
        ParameterError: it is none of these.
    """
    if isinstance(what, Mechanism):
        return what
    if isinstance(what, (str, Path, dict, Release)):
        return Release.of(what, name).mechanism
    for known in (what, getattr(what, "ledger", None)):
        found = getattr(known, "mechanism", None)
        if callable(found):
            return mechanism_of(found(), name)
    hint = "a mechanism such as rt.dpsgd(...), or a ledger of one"
    if isinstance(what, (list, tuple)):
        hint = "one release: rt.Ledger((a, b)) is several together, and rt.assess_each([a, b]) each by itself"
    raise ParameterError(name, None if what is None else type(what).__name__, hint)


def _what(name: str, said: Any) -> Any:
    """What is certified, or several of it; a document of a file is read."""
    if isinstance(said, (list, tuple)):
        return tuple(_what(name, one) for one in said)
    from reticent.interop.documents import release_from

    if isinstance(said, (str, Path)):
        path_said(name, said)
    return release_from(said, name) if isinstance(said, dict) else said


def _what_written(what: Any) -> Any:
    """A path, or what is public of it.

    Raises:
        UnsupportedError: it is a certificate that has no file.
    """
    if isinstance(what, tuple):
        return [_what_written(one) for one in what]
    path = what if isinstance(what, (str, Path)) else getattr(what, "path", None)
    if path is None and (hasattr(what, "headline") or hasattr(what, "certificate")):
        raise UnsupportedError("a request names the file of a certificate: save it first")
    return Release.of(what).written() if path is None else str(path)


def _whole_written(what: Any) -> Any:
    """A path, or a mechanism.

    Raises:
        UnsupportedError: it is a ledger that has no file; a request must not hold its private parts.
    """
    if isinstance(what, tuple):
        return [_whole_written(one) for one in what]
    if not isinstance(what, (str, Path)) and getattr(what, "path", None) is None and witness_of(what) is not None:
        raise UnsupportedError("a request names the file of a ledger: save it first")
    return _what_written(what)


def _runs(name: str, said: Any) -> Any:
    """How many runs there are, as an object or as its record."""
    from reticent.mechanisms.codec import runs_of
    from reticent.pairs.runs import Runs

    try:
        found = runs_of(said) if isinstance(said, dict) else said
    except (KeyError, TypeError):
        found = None
    if not isinstance(found, Runs):
        raise ParameterError(name, str(said), "a record with its kind and the mean number of runs")
    return found


def _runs_written(runs: Any) -> dict[str, Any]:
    from reticent.mechanisms.codec import runs_record

    return runs_record(runs)


_ONE_OR_MORE = {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array"}]}
WHAT = Spelling(_what, _what_written, _ONE_OR_MORE, None)
WHOLE = replace(WHAT, written=_whole_written)
"""The same where what is private of a ledger is needed as well."""
RELEASE = Spelling(
    lambda name, said: Release.of(said, name),
    Release.written,
    {"anyOf": [{"type": "string", "description": "a path"}, {"type": "object"}]},
    None,
)


SELECTION = Spelling(_runs, _runs_written, {"type": "object", "required": ["kind"]}, None)


def _short(record: Any) -> Any:
    """Without what is not stated."""
    if isinstance(record, list):
        return [_short(one) for one in record]
    if not isinstance(record, dict):
        return record
    return {name: _short(value) for name, value in record.items() if value is not None}


def _warnings(ledger: Any) -> dict[str, str]:
    return {fact.key: str(fact.text) for fact in getattr(ledger, "faults", ())}


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
    fields = DPSGD.resolved({**locals(), "unit": checks.member(Unit, unit=unit)})
    for name, instead in (("sample_rate", "batch_size and dataset_size"), ("steps", "epochs")):
        if fields[name] is None:
            raise ParameterError(name, None, f"given, or {instead}", shown=False)
    return DPSGD(**fields)
