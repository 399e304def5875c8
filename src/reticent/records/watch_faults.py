"""What can be wrong with a training loop that was watched: a name, how bad it is, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a fault is."""

    ERROR = "error"
    """No proof covers the run: no number promises anything."""
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
        remedy: what to do about it.
    """

    severity: Severity
    reason: str
    remedy: str


class Fault(StrEnum):
    """Named facts of a watched loop that its reader must know."""

    MIXES_RECORDS = "mixes-records"
    PERMUTED_INPUT = "permuted-convolution"
    OTHER_OPTIMISER = "other-optimiser"
    WEIGHTS_CHANGED = "weights-changed-outside"
    UNRECORDED_STEPS = "unrecorded-steps"
    UNKNOWN_CLIPPING = "unknown-clipping"
    UNKNOWN_NOISE = "unknown-noise"
    STEPS_BEFORE = "steps-before-the-watch"
    PUBLIC_SEED = "publicly-seeded-noise"
    REPEATED_NOISE = "repeated-noise"
    CHANGED_GRADIENTS = "gradients-changed-after-noise"
    TOO_LITTLE_NOISE = "noise-not-added"
    BUFFERS_LEARNT = "buffers-changed"
    TRAINED_OUTSIDE = "trained-outside-the-model"
    LARGER_BATCH = "batches-larger-than-drawn"
    UNCLIPPED = "trained-without-clipping"
    NOT_FINITE = "weights-not-finite"
    NOT_FOLLOWED = "not-followed"
    PRIVATE_DIVISOR = "divided-by-the-batch-size"
    LEFT_OUT = "batches-left-out"
    NOT_LOOKED_AT = "mixing-not-looked-at"
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
    PUBLIC_DRAWS = "publicly-seeded-draws"
    REPEATED_RECORDS = "records-listed-again"
    OTHER_MODEL = "other-model-trained"
    METRIC_SCHEDULE = "learning-rate-follows-a-metric"
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
        """Severity, reason and remedy."""
        return _EXPLANATIONS[self]

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self.explanation.remedy

    @property
    def text(self) -> str:
        """Reason and remedy as sentences for people."""
        explained = self.explanation
        return f"{explained.reason} {explained.remedy}"

    @property
    def voids(self) -> bool:
        """Whether no proof covers the run."""
        return self.explanation.severity is Severity.ERROR


_POISSON = (
    "Use Opacus's make_private with poisson_sampling=True, or a batch sampler that draws each record independently."
)
_HIDDEN = (
    "Hand the loader to rt.random_allocation, which hides in which batch a record is. Or draw each record "
    "independently: Opacus's make_private with poisson_sampling=True does."
)
_PLAIN_ORDER = "Call .contiguous() on the input of each nn.Conv2d, or use grad_sample_mode='functorch'."

_EXPLANATIONS = {
    Fault.MIXES_RECORDS: Explanation(
        Severity.ERROR,
        "The model, the loss or what makes the batches mixes records: by batch normalisation, mixup, padding to the "
        "longest record of a batch, or one gradient for several records. So clipping does not bound what one record "
        "moves. No noise counts.",
        "Leave out mixup, and replace batch normalisation by group or layer normalisation, and a loss by a sum or mean "
        "over records. A mean that divides by the weights of classes, or by the number of all tokens, is none. Pad "
        "to a fixed length, or to bounds that do not depend on the batch. Give each record a gradient of its own (no "
        "microbatches); where a person's rows share one, make the person one item of the data set. Give each layer "
        "rows of its records: Opacus takes those of a table, as of positions or classes, for records where they are as "
        "many.",
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
        "The weights, or what the optimizer remembers of earlier steps, changed between two steps. Nobody saw from "
        "what, so no noise counts.",
        "Change weights through the optimizer that is watched, or before the watch begins.",
    ),
    Fault.UNRECORDED_STEPS: Explanation(
        Severity.ERROR,
        "The optimizer took steps for which no noise was seen or recorded, so no noise counts.",
        "Step the private optimizer that make_private returned, or call ledger.step once for each step.",
    ),
    Fault.UNKNOWN_CLIPPING: Explanation(
        Severity.ERROR,
        "The optimizer clips in a way that nobody can see from here, or the program changed the gradients of single "
        "records before they were clipped. So no noise counts.",
        "If each record's gradient follows from that record alone and is brought below max_grad_norm, say so: "
        "watch(..., clipping='flat').",
    ),
    Fault.UNKNOWN_NOISE: Explanation(
        Severity.ERROR,
        "Code of the program decides what noise the gradients get, or what happens to it: they are not their sum and "
        "one draw of Opacus's own noise, divided by one number. Nobody saw what they are, so no noise counts.",
        "Leave add_noise and scale_grad of the private optimizer to Opacus. An optimizer of your own calls them with "
        "super(), and leaves .grad as it is afterwards.",
    ),
    Fault.STEPS_BEFORE: Explanation(
        Severity.ERROR,
        "Steps were taken on this model before the watch began, or gradients gathered for one, and no ledger of them "
        "is known. So no noise counts.",
        "Watch all steps; hand the ledger of those before to watch(..., continues=ledger). If they used no record of "
        "this training, say so: watch(..., start='declared'). Say it also where the weights were averaged since, as "
        "between federated rounds, and certify all ledgers together: rt.certify([first, second]).",
    ),
    Fault.PUBLIC_SEED: Explanation(
        Severity.ERROR,
        "The generator of the noise has a seed that anybody can guess or read in the program. Anyone who repeats the "
        "noise takes it away, so no noise counts.",
        "Call torch.seed() after everything that seeds, such as a Trainer or seed_everything, or "
        "rt.secure_noise(optimizer).",
    ),
    Fault.REPEATED_NOISE: Explanation(
        Severity.ERROR,
        "The generator was put back to a state from which noise was drawn before: two steps have the same noise, and "
        "their difference has none. No noise counts.",
        "Set the state of no generator during training, or use rt.secure_noise(optimizer).",
    ),
    Fault.CHANGED_GRADIENTS: Explanation(
        Severity.ERROR,
        "The gradients were changed after they were clipped, or after the noise, before the step of the optimizer. "
        "Nobody saw from what, so no noise counts.",
        "Change gradients in an optimizer inside the private one, in its own step, and leave .grad as it is.",
    ),
    Fault.TOO_LITTLE_NOISE: Explanation(
        Severity.ERROR,
        "Less noise was added to the gradients than the optimizer states, so no noise counts.",
        "Leave the private optimizer's way of adding noise as it is, or use rt.secure_noise(optimizer).",
    ),
    Fault.BUFFERS_LEARNT: Explanation(
        Severity.ERROR,
        "Buffers of the model changed during training, such as running means or a codebook. What they learn from "
        "the records gets no noise, so no noise counts.",
        "Compute them from public data before the watch, or hold them fixed.",
    ),
    Fault.TRAINED_OUTSIDE: Explanation(
        Severity.ERROR,
        "The inputs of the model come out of parameters that are trained together with it. Nobody saw noise there, so "
        "no noise counts.",
        "Put all that is trained into one module, and make it private as a whole.",
    ),
    Fault.LARGER_BATCH: Explanation(
        Severity.ERROR,
        "A step clipped more gradients than the loader drew records for it. One record may be in it several times, as "
        "several views of it are, each clipped alone. Or a made-up record fills an empty batch (rand_on_empty), and "
        "whoever is drawn takes its place. Then clipping does not bound what one record moves. No noise counts.",
        "Average the views of a record before its gradient is clipped, leave rand_on_empty out, and take one step for "
        "each batch of the loader that is watched.",
    ),
    Fault.UNCLIPPED: Explanation(
        Severity.ERROR,
        "Ghost clipping did not measure all that a record moves, or clipped nothing: a parameter that was unfrozen "
        "after make_private, a loss that make_private did not return, losses that are no list with one for each "
        "record, or a weight that the loss reaches past its layer, as a penalty does. So clipping does not bound what "
        "one record moves. No noise counts.",
        "Use the loss that make_private returned, on outputs without a last axis of length 1, and no penalty on the "
        "weights. Let all that will be trained be trainable when make_private is called, and freeze parts of it "
        "afterwards. Or use another grad_sample_mode.",
    ),
    Fault.NOT_FINITE: Explanation(
        Severity.ERROR,
        "Some weights are infinite or no numbers. A record whose gradient is so gets past clipping and shows itself. "
        "No noise counts.",
        "Train on records and with a loss whose gradients are finite numbers.",
    ),
    Fault.NOT_FOLLOWED: Explanation(
        Severity.ERROR,
        "The watch failed at something that it does not know, and did not see all that the loop did. So no noise "
        "counts.",
        "The error was printed where the loop ran: report it together with the loop.",
    ),
    Fault.PRIVATE_DIVISOR: Explanation(
        Severity.ERROR,
        "The noisy sum was divided by the number of records that were drawn. That number is private: the size of the "
        "noise gives it away, and one record moves the share of all others. So no noise counts.",
        "Divide by the expected batch size, as Opacus does if expected_batch_size is left as it is.",
    ),
    Fault.LEFT_OUT: Explanation(
        Severity.ERROR,
        "Some batches that were drawn were left out. Where that depends on what is in them, as on a loss that is not "
        "finite, an overflow or how few records they have, a record shows without noise. So no noise counts.",
        "Take one step for each batch, also for an empty one.",
    ),
    Fault.NOT_LOOKED_AT: Explanation(
        Severity.WARNING,
        "The watch could not look whether records of a batch mix: it cannot copy or take apart what makes a batch or "
        "reads it, the loader's workers or iterator were there before it, or the loop computes other lengths from "
        "records that are padded to the longest. The numbers hold if none mixes, and nobody vouches for that.",
        "Begin the watch before the loader is read, give the model tensors, and pad to a fixed length. Or have the "
        "loop audited with reticent audit-loop.",
    ),
    Fault.NO_NOISE: Explanation(
        Severity.WARNING, "Some steps were taken without noise: there is no guarantee.", "Set a noise multiplier."
    ),
    Fault.SHUFFLED: Explanation(
        Severity.WARNING,
        "The records were shuffled and cut into batches. No proof says that this hides who was in which batch, so each "
        "pass over the data counts as one release that contains the record.",
        _HIDDEN,
    ),
    Fault.IN_ORDER: Explanation(
        Severity.WARNING,
        "The batches were cut in the order of the data. Each pass over the data counts as one release that contains "
        "the record.",
        _HIDDEN,
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
        "The batches were drawn by several processes, of which this ledger saw one. No amplification by sampling is "
        "claimed.",
        "Keep one ledger for each process and compare them; no proof combines them yet.",
    ),
    Fault.FIXED_SIZE: Explanation(
        Severity.NOTE,
        "Every batch had the same size. The numbers use the proof for such batches, which protects less than random "
        "batch sizes.",
        "Draw each record, or each client, independently and with the same probability.",
    ),
    Fault.UNKNOWN_SAMPLER: Explanation(
        Severity.WARNING,
        "Nobody could see how the records of a batch are drawn. Every step counts as if it used the record once; "
        "no amplification by sampling is claimed.",
        _POISSON,
    ),
    Fault.OTHER_BATCHES: Explanation(
        Severity.WARNING,
        "Some steps did not use the batches that the loader drew, one by one. No amplification by sampling is claimed.",
        "Give watch the loader that the loop reads, take one step for each batch, and tell ledger.step the batch_size "
        "where worker processes load the data.",
    ),
    Fault.ACCUMULATION: Explanation(
        Severity.WARNING,
        "Gradients of several batches were added up before one step. A record may be in more than one of them, and the "
        "numbers allow for it; no amplification by Poisson sampling is claimed.",
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
        "The noise came from a generator that the program made. Anyone who knows its seed can take the noise away, and "
        "no guarantee covers them.",
        "Give the private optimizer no generator, or keep its seed from everybody.",
    ),
    Fault.PUBLIC_DRAWS: Explanation(
        Severity.WARNING,
        "The generator of the batches has a seed that anybody can guess or read in the program, or it was put back and "
        "draws the same batches again. So who was in which batch is no secret. No amplification by sampling is "
        "claimed.",
        "Call torch.seed() after everything that seeds, set no state, and give the loader no generator.",
    ),
    Fault.REPEATED_RECORDS: Explanation(
        Severity.WARNING,
        "The data set lists the same record more than once, as a Subset or ConcatDataset may. The numbers are "
        "about one record with all its copies.",
        "List each record once.",
    ),
    Fault.OTHER_MODEL: Explanation(
        Severity.WARNING,
        "Parameters outside of this model were trained while it was watched. What they learnt from these records, and "
        "what this model learnt from them, is in no number here.",
        "Put all that is trained into one module, or train the other one on other data.",
    ),
    Fault.METRIC_SCHEDULE: Explanation(
        Severity.WARNING,
        "The learning rate followed a metric. If that was computed from training records without noise, no number here "
        "covers what it reveals.",
        "Fix the schedule before training, or compute the metric from public records.",
    ),
    Fault.DECLARED: Explanation(
        Severity.WARNING,
        "Noise, clipping or sampling are taken as they were stated or set; nobody saw all of them.",
        "Have them audited with reticent audit-loop, or train with Opacus.",
    ),
    Fault.SIZE_PUBLIC: Explanation(
        Severity.WARNING,
        "The number of records is treated as public, and a rate that follows from it as the same without a record. If "
        "the count could give a person away (a ward with one patient more), that is not covered.",
        "Nothing is to be done if the number may be known.",
    ),
    Fault.ENDED_EARLY: Explanation(
        Severity.WARNING,
        "The loop ended with an error. The moment may tell something about the training records.",
        "Train again if that matters.",
    ),
    Fault.STOPPED_BEFORE_PLAN: Explanation(
        Severity.WARNING,
        "The loop stopped before the planned number of steps. The person who stopped it may have looked at its "
        "results, so all planned steps count. If it stopped because of a loss on these records, the moment gives away "
        "more than any number here says.",
        "Plan no more steps than you need, and stop by other people's records. What a shorter plan would have cost is "
        "not claimed afterwards.",
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
        "The noise came from torch's generator, which is not made to withstand an attacker who predicts it: on a CPU "
        "it uses 32 bits of its seed, and 2^32 seeds can be tried out.",
        "Train the final model with rt.secure_noise(optimizer).",
    ),
}
