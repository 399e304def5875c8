"""What one number needs: what was released, who attacks, and the trade-off curve that follows. numpy and scipy only.

*What was released* x *who attacks* gives a **trade-off curve**: how often the attacker's best tests accuse somebody who
is not in the data, against how often they miss somebody who is. Every risk number is read off that curve. Calibration
is the inverse: the least noise whose curve keeps a number. An audit measures the curve: attacks that were run bound it
from below. A certificate bundles curves, numbers and what they rest on, so that anybody derives them again. These
three have rooms of their own. What they all ask is here.

A number is a proof. It has an *enclosure*: a curve on each side of the true one, each of which holds by itself. It has
*theorems*, by the keys of the list of papers. It has *conditions*, each ``checked``, ``declared`` or ``assumed``. What
may be claimed follows from these three, and nobody states it.

Two data sets differ in one record. What was released is *dominated* by a pair of distributions, one for each data set:
whoever tells these two apart at least as well tells the data sets apart. Pairs of single steps are composed by
*routes*, which enclose the composition; the closest curve on each side counts.

*Above* and *below* are said of attackers. A curve above is that of an attacker at least as strong, which is the safe
side; as a function of the false positive rate it lies lower.

When a file is imported it imports those before it alone, so this is the order to read them in. Lists, languages, and
conditions that samplers bring are looked up when somebody asks.

Words, and what is refused
    text, messages, errors, checks, keywords, lazy, registry, stopping, styles
A curve, and numbers read off it
    curves._logs, curves.sums, curves._thresholds, curves.base, curves.gaussian, curves.piecewise, curves.algebra,
    curves.worst, curves.polygon, curves.capped, curves.enclosure, risk.measures, risk.conversions
A proof, and what may be asked
    proofs.references, proofs.conditions, proofs.claims, proofs.proof, risk.questions
A dominating pair: in general, of Gaussian noise, of Poisson sampling
    pairs.neighbouring, pairs.columns, pairs.gaussian_mixture, pairs.losses, pairs.base, pairs.part, pairs.disclosure,
    pairs.curve, pairs.gaussian, pairs.antipodal, pairs.poisson
A pair for all records of one person
    curves.binomial, pairs.whole_user
How batches are drawn, and what was released
    samplers.epochs, samplers.base, samplers.poisson, mechanisms.units, mechanisms.base, mechanisms.dpsgd,
    mechanisms.gaussian, mechanisms.ledger
Many steps, one curve
    accountants.steps, accountants.grouped, accountants.route, accountants.affinity, accountants.bounds,
    accountants.lattice, accountants.lattice_cells, accountants.powers, accountants.lattice_sums, accountants.enclose,
    accountants.one_direction, accountants.compose, accountants.mu_limits
Who attacks
    adversaries.base, adversaries.witness, adversaries.from_ledger, adversaries.worst_case, adversaries.side_by_side

The rooms beside the kernel hold more of each kind: more curves, pairs, samplers, mechanisms and attackers, one file
each, and the route by contours, which is closer and faster than the lattice wherever it serves. The list of a kind is
the stub file of its room. It is read when somebody first asks for it, so no number depends on what was imported.
"""
