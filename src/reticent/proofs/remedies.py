"""What to do about a condition that nobody vouches for: one sentence each, by the key of ``CONDITIONS``."""

from __future__ import annotations

from collections.abc import Mapping

_LOADER = "Let reticent train, or watch a loader of Opacus: the ledger then shows it. Else read the loader's code."

REMEDIES: Mapping[str, str] = {
    "hidden-draws": "Publish no masks, traces or logs of batches, and keep the random state.",
    "unpredictable-noise": "Use fresh randomness; around a loop of Opacus call rt.secure_noise(optimizer).",
    "real-numbers": "Nothing closes this gap here; know that attacks on rounding are not covered.",
    "used-once": "List every release that used these records, and compose them in one ledger.",
    "public-preparation": "Take ranges, categories and vocabularies from outside, and declare them in a schema.",
    "public-divisor": "Divide by the expected batch size, which is the default, or state a divisor.",
    "poisson-draws": _LOADER,
    "fixed-size-draws": _LOADER,
    "shuffled-draws": _LOADER,
    "kept-places": "Compare with the place left empty (zero-out), or draw each record by itself: sampler poisson.",
    "allocation-draws": "Draw with rt.random_allocation(loader), or let reticent train with that sampler.",
    "kept-allocation-draws": "Read the code that assigns records to steps: one uniform draw each, before training.",
    "truncated-draws": "Read the code that cuts batches: it must choose uniformly, without a look at the records.",
    "stated-guarantee": "Read the proof of that epsilon and delta, and its neighbouring relation.",
    "participation-pattern": "Count in which steps a record takes part, and state the most and the closest.",
    "clipped": "Let reticent train; audit other loops with reticent audit-loop.",
    "planned-steps": "Fix the steps and take them all; or stop by other people's records, and state planned_steps.",
    "fixed-plan": "Fix all settings before the first result, or ask rt.GaussianFilter before each release.",
    "drawn-anew": "Draw anew for each part: no seed, no list and no permutation in two of them.",
    "start-weights": "Draw weights anew, use public ones, or continue a ledger: rt.watch(..., continues=ledger).",
    "records-per-person": "Count each person's records; keep one each, or state the largest number.",
    "one-direction": "State --gradients one-direction for linear models with one output only.",
    "linear-head": "Train a last linear layer only, on features that stay the same.",
    "drawn-setting": "Draw the setting from the list before the run; or state the most revealing setting alone.",
    "independent-runs": "Draw the number of runs first, then each setting from one list, whatever came before.",
    "hidden-runs": "Publish no log, no progress, no times and no folder of the other runs.",
    "best-only": "Keep the best run only; reticent train with a section selection writes nothing of the others.",
    "counted-scores": "Score on records that are not protected, or set score: train with score_noise.",
    "filtered": "Ask rt.GaussianFilter.admit before each release.",
    "same-features": "Compute features once, with an encoder that these records did not train.",
    "known-share": "Train without a bias, or bound its share of the gradient by the length of the features.",
    "fixed-length": "Report the worst case; or train a linear model or head and state --gradients.",
    "one-direction-per-person": "Report the worst case, or keep one record of each person.",
    "independent-directions": "Report the worst case, or keep one record of each person.",
    "bounded-change": "Enforce it by a filter while training: see the attribute attacker.",
    "contraction": "Show that the clipped loss is convex and smooth, and the step short; no network qualifies.",
    "equal-updates": "Use plain SGD with one learning rate and one clip norm, and whole passes in one order.",
    "final-model-only": "Publish no checkpoint, no log and no early stop.",
    "secret-entropy": "Count the bits of the generator that drew the secret; of what people choose, assume few.",
    "secret-nowhere-else": "Search the other records, and what the model was trained on before, for the secret.",
    "same-stop": "Leave the budget out, or so large that it is never spent whatever the records are.",
    "audited-record": "Enforce the filter for all records, not for those that were measured.",
}
"""Every condition by key."""
