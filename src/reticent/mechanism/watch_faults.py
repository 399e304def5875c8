"""What can be wrong with a training loop that was watched: a name, how bad it is, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a fault is."""

    ERROR = "error"
    """No proof covers the run: every number says that nothing is hidden."""
    WARNING = "warning"
    """The numbers hold, but they are larger than they need be, or leave something out that the text names."""
    NOTE = "note"
    """Good to know."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One fault in words.

    Attributes:
        severity: how bad it is.
        reason: what was seen and what the numbers make of it.
        mend: what to do about it.
    """

    severity: Severity
    reason: str
    mend: str


class Fault(StrEnum):
    """Named facts of a watched loop that its reader must know."""

    MIXES_RECORDS = "mixes-records"
    PERMUTED_INPUT = "permuted-convolution"
    OTHER_OPTIMISER = "other-optimiser"
    WEIGHTS_CHANGED = "weights-changed-outside"
    UNRECORDED_STEPS = "unrecorded-steps"
    UNKNOWN_CLIPPING = "unknown-clipping"
    NO_NOISE = "no-noise"
    SHUFFLED = "shuffled-not-poisson"
    IN_ORDER = "in-order-not-poisson"
    WEIGHTED = "weighted-sampler"
    WITH_REPLACEMENT = "with-replacement-sampler"
    DISTRIBUTED = "distributed-sampler"
    FIXED_SIZE = "fixed-size-not-poisson"
    UNKNOWN_SAMPLER = "unknown-sampler"
    OTHER_BATCHES = "batches-not-from-the-loader"
    ACCUMULATION = "gradient-accumulation"
    PERMUTED_GRADIENTS = "wrong-gradients"
    CLIP_AND_NOISE_DIFFER = "clip-and-noise-differ"
    ADAPTIVE_COUNT = "adaptive-clipping-counts-records"
    SEEDED_NOISE = "seeded-noise"
    DECLARED = "declared-not-seen"
    SIZE_PUBLIC = "size-treated-as-public"
    ENDED_EARLY = "ended-with-an-error"
    STOPPED_BEFORE_PLAN = "stopped-before-plan"
    MORE_THAN_PLANNED = "more-than-planned"
    DROP_LAST = "drop-last"
    CHANGED_CLIP_NORM = "changed-clip-norm"
    CHANGED_NOISE = "changed-noise"
    INSECURE_GENERATOR = "insecure-generator"

    @property
    def explanation(self) -> Explanation:
        """Severity, reason and mend."""
        return _EXPLANATIONS[self]

    @property
    def text(self) -> str:
        """Reason and mend as sentences for people."""
        explained = self.explanation
        return f"{explained.reason} {explained.mend}"

    @property
    def voids(self) -> bool:
        """Whether no proof covers the run."""
        return self.explanation.severity is Severity.ERROR


_POISSON = "Use Opacus's make_private with poisson_sampling=True, or a batch sampler that draws each record by a coin."
_PLAIN_ORDER = "Call .contiguous() on the input of each nn.Conv2d, or use grad_sample_mode='functorch'."

_EXPLANATIONS = {
    Fault.MIXES_RECORDS: Explanation(
        Severity.ERROR,
        "A layer mixes the records of a batch, as batch normalisation does, so clipping does not bound what one record "
        "moves. No noise counts.",
        "Replace it by group or layer normalisation.",
    ),
    Fault.PERMUTED_INPUT: Explanation(
        Severity.ERROR,
        "The input of a convolution was not in plain order in memory, and Opacus misreads it: records mix, or ghost "
        "clipping measures wrong norms. So clipping does not bound what one record moves. No noise counts.",
        _PLAIN_ORDER,
    ),
    Fault.OTHER_OPTIMISER: Explanation(
        Severity.ERROR,
        "Another optimizer stepped parameters of this model. Nobody saw its noise, so no noise counts.",
        "Train all parameters with the optimizer that is watched.",
    ),
    Fault.WEIGHTS_CHANGED: Explanation(
        Severity.ERROR,
        "The weights changed between two steps of the optimizer. Nobody saw from what, so no noise counts.",
        "Change weights through the optimizer that is watched, or before the watch begins.",
    ),
    Fault.UNRECORDED_STEPS: Explanation(
        Severity.ERROR,
        "The optimizer took steps for which no noise was seen or recorded, so no noise counts.",
        "Step the private optimizer that make_private returned, or call ledger.step once for each step.",
    ),
    Fault.UNKNOWN_CLIPPING: Explanation(
        Severity.ERROR,
        "The optimizer clips in a way that nobody can see from here, so no noise counts.",
        "If each record's gradient is brought below max_grad_norm, say so: watch(..., clipping='automatic').",
    ),
    Fault.NO_NOISE: Explanation(
        Severity.WARNING, "Some steps were taken without noise: there is no guarantee.", "Set a noise multiplier."
    ),
    Fault.SHUFFLED: Explanation(
        Severity.WARNING,
        "The records were shuffled and cut into batches. No proof says that this hides who was in which batch, so each "
        "pass over the data counts as one release that contains the record.",
        _POISSON,
    ),
    Fault.IN_ORDER: Explanation(
        Severity.WARNING,
        "The batches were cut in the order of the data. Each pass over the data counts as one release that contains "
        "the record.",
        _POISSON,
    ),
    Fault.WEIGHTED: Explanation(
        Severity.WARNING,
        "A weighted sampler drew the records. A record may fill a batch, and every step counts as if it did. Weights "
        "that depend on the records are covered by no number here.",
        "Weigh the loss instead of the draws. " + _POISSON,
    ),
    Fault.WITH_REPLACEMENT: Explanation(
        Severity.WARNING,
        "The records were drawn with replacement. One record may fill a batch, and every step counts as if it did.",
        _POISSON,
    ),
    Fault.DISTRIBUTED: Explanation(
        Severity.WARNING,
        "The batches were drawn by several processes, of which this ledger saw one. Nothing is taken off for sampling.",
        "Keep one ledger for each process and compare them; no proof combines them yet.",
    ),
    Fault.FIXED_SIZE: Explanation(
        Severity.NOTE,
        "Every batch had the same size. The numbers use the proof for such batches, which protects less than random "
        "batch sizes.",
        "Draw each record, or each client, by a coin of its own.",
    ),
    Fault.UNKNOWN_SAMPLER: Explanation(
        Severity.WARNING,
        "Nobody could see how the records of a batch are drawn. Every step counts as if it used the record once; "
        "nothing is taken off for sampling.",
        _POISSON,
    ),
    Fault.OTHER_BATCHES: Explanation(
        Severity.WARNING,
        "Some steps did not use the batches that the loader drew, one by one. Nothing is taken off for sampling.",
        "Give watch the loader that the loop reads, take one step for each batch, and tell ledger.step the batch_size "
        "where worker processes load the data.",
    ),
    Fault.ACCUMULATION: Explanation(
        Severity.WARNING,
        "Gradients of several batches were added up before one step. A record may be in more than one of them, and the "
        "numbers allow for it; nothing is taken off for Poisson sampling.",
        "Draw one large batch and let Opacus's BatchMemoryManager split it.",
    ),
    Fault.PERMUTED_GRADIENTS: Explanation(
        Severity.WARNING,
        "The input of a convolution was not in plain order in memory, such as channels last, and Opacus misreads it. "
        "The guarantee holds, as each record's gradient was clipped; but the gradients are wrong.",
        _PLAIN_ORDER,
    ),
    Fault.CLIP_AND_NOISE_DIFFER: Explanation(
        Severity.WARNING,
        "Gradients were clipped to one norm and the noise was scaled to another. The noise counts against the norm of "
        "clipping.",
        "Set max_grad_norm on the model and the optimizer alike.",
    ),
    Fault.ADAPTIVE_COUNT: Explanation(
        Severity.WARNING,
        "The clip norm follows the share of clipped records. That share is divided by the size of the batch, which is "
        "private, and no number here covers what this reveals.",
        "Fix the clip norm before training.",
    ),
    Fault.SEEDED_NOISE: Explanation(
        Severity.WARNING,
        "The noise came from a generator that the program made. Whoever knows its seed can take the noise away, and no "
        "guarantee holds against them.",
        "Give the private optimizer no generator, or keep its seed from everybody.",
    ),
    Fault.DECLARED: Explanation(
        Severity.WARNING,
        "The program declared noise, clipping or sampling; nobody saw them.",
        "Have them audited with reticent audit-loop, or train with Opacus.",
    ),
    Fault.SIZE_PUBLIC: Explanation(
        Severity.WARNING,
        "The number of records is not hidden: the training used it as if everybody knew it.",
        "Nothing is to be done if the number may be known.",
    ),
    Fault.ENDED_EARLY: Explanation(
        Severity.WARNING,
        "The loop ended with an error. The moment may tell something about the training records.",
        "Train again if that matters.",
    ),
    Fault.STOPPED_BEFORE_PLAN: Explanation(
        Severity.WARNING,
        "The loop stopped before the planned number of steps. Whoever stopped it may have looked at its results, so "
        "all planned steps count.",
        "Plan no more steps than you need. What a shorter plan would have cost is not claimed afterwards.",
    ),
    Fault.MORE_THAN_PLANNED: Explanation(
        Severity.WARNING,
        "The loop took more steps than were planned. All that ran count, and nobody vouches that their number does not "
        "depend on results.",
        "State as planned_steps what the loop takes at most.",
    ),
    Fault.DROP_LAST: Explanation(
        Severity.NOTE, "The last incomplete batch of each pass was left out.", "The numbers take that into account."
    ),
    Fault.CHANGED_CLIP_NORM: Explanation(
        Severity.NOTE,
        "The clip norm changed during training.",
        "The numbers do not depend on it if nobody looked at the records to choose it.",
    ),
    Fault.CHANGED_NOISE: Explanation(
        Severity.NOTE,
        "Noise or sample rate changed during training.",
        "Each part counts with its own; the schedule must not depend on the records.",
    ),
    Fault.INSECURE_GENERATOR: Explanation(
        Severity.NOTE,
        "The noise came from torch's generator, which is not made to withstand an attacker who predicts it.",
        "Train the final model with a secure generator.",
    ),
}
