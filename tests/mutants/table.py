"""The list of mutants: one bug each in a term that a claim stands on, and the test that must see it.

``docs/development/mutants.md`` is made from this list. A mutant whose text has gone from the source is reported by the run.
"""

# ruff: noqa: E501
from __future__ import annotations

from dataclasses import dataclass

SIGNS = "tests/adversaries/relaxed/test_sign_error_terms.py"
TERMS = "tests/accountants/test_error_terms.py"
ENCLOSURE = "tests/accountants/test_enclosure.py"
SPLIT = "tests/accountants/test_split.py"
LAWS = "tests/accountants/test_laws.py"
SAMPLERS = "tests/accountants/test_samplers.py"
COMPOSE = "tests/accountants/test_compose.py"
NEAR_ATOMIC = "tests/accountants/test_near_atomic.py"
ROUTES = "tests/accountants/test_routes.py"
REFEREE = "tests/accountants/test_referee_cases.py"
POLYGON = "tests/curves/test_polygon.py"
COMMON_SIGN = "tests/adversaries/relaxed/test_common_sign.py"
SIGN_LATTICE = "tests/adversaries/relaxed/test_sign_lattice.py"
SCHEDULES = "tests/adversaries/relaxed/test_sign_schedules.py::TestErrorTerms"
CLOSED_FORMS = "tests/accountants/test_closed_forms.py"
ADVERSARIES = "tests/adversaries/test_adversaries.py"
GAME = "tests/adversaries/game/test_membership_game.py"
ATTRIBUTE = "tests/adversaries/test_attribute.py"
CALIBRATE = "tests/calibration/test_calibrate.py"
RECORDER = "tests/sensitivity/test_recorder.py"
TRUST = "tests/sensitivity/test_sensitivity_trust.py"
SENSITIVITY = "tests/sensitivity/test_sensitivity.py"
CUT = "tests/accountants/test_cut_moments.py"
PERSONS = "tests/adversaries/relaxed/test_whole_user_directions.py"
TAIL = "tests/adversaries/relaxed/test_relaxed_tail.py"
ONE_NORMAL = "tests/adversaries/relaxed/test_one_normal.py"
VERIFY = "tests/certificates/test_verify.py"
LEDGER_FACTS = "tests/certificates/test_ledger_facts.py"
NEIGHBOURS = "tests/certificates/test_neighbours.py"
SIGNATURE = "tests/certificates/test_signature.py"
PROVENANCE = "tests/training/test_provenance.py"
TEXT = "tests/certificates/test_declared_text.py"
WHOLE_USERS = "tests/accountants/test_whole_users.py"
DIMENSIONS = "tests/adversaries/relaxed/test_relaxed_dimension.py"
STATISTICS = "tests/auditing/test_statistics.py"
WHITE_BOX = "tests/attacks/test_white_box.py"
REPLAY = "tests/attacks/test_replay.py"
NOISE_CHECKS = "tests/attacks/test_noise_checks.py"
PARTICIPATION = "tests/attacks/test_participation.py"
ONE_RUN = "tests/auditing/test_one_run.py"
REACTING = "tests/adversaries/relaxed/test_reacting.py"
REACTING_ORACLES = "tests/adversaries/relaxed/test_reacting_oracles.py"
SCREEN = "tests/dashboard/test_screen.py"
REGISTRY = "tests/test_registry.py"
FORM = "tests/training/test_model_form.py"
NORMALISE = "tests/training/test_normalise.py"
VOUCHED = "tests/records/test_vouched.py"
WATCH_FORM = "tests/watching/test_model_form.py"
CLOSED = "tests/certificates/test_policy_closed.py"
PLANTED = "tests/certificates/test_planted.py"
HOSTILE = "tests/certificates/test_hostile_work.py"
YAML = "tests/io/test_yaml.py"
SERVER = "tests/dashboard/test_server.py"
FACTS = "tests/adversaries/test_facts_to_claims.py"
EPOCHS = "tests/mechanisms/test_epochs.py"
ROUNDED = "tests/accountants/test_rounded_ends.py"
POINTS = "tests/calibration/test_points.py"
ALLOCATION = "tests/accountants/test_random_allocation.py"
TRUNCATED = "tests/accountants/test_truncated.py"
CHAIN = "tests/accountants/test_allocation_chain.py"
BRIDGES = "tests/interop/test_bridges.py"
BEST = "tests/proofs/test_best.py"
CLAIMS, CONDITIONS = "tests/proofs/test_claims.py", "tests/adversaries/test_conditions.py"
WATCH = "reticent/watching/"
LOOPS = "tests/watching/test_false_certificates.py"
FALSE_NOISE = "tests/watching/test_false_noise.py"
FALSE_UPDATES = "tests/watching/test_false_updates.py"
BUGS = "tests/watching/test_planted_bugs.py"
ONE_WATCH = "tests/watching/test_one_watch.py"

LIVE = "tests/watching/test_live.py"
CLIENTS = "tests/records/test_clients.py"
COLUMNS = "tests/data/test_own_columns.py"
WATCH = "reticent/watching/"


@dataclass(frozen=True)
class Mutant:
    """One edit.

    Attributes:
        name: what is broken.
        file: below ``src``.
        before, after: a text that stands there, and what replaces it.
        test: that must fail, as pytest names it: a file or one test.
    """

    name: str
    file: str
    before: str
    after: str
    test: str = TERMS


MUTANTS = (
    Mutant("tables: a percentage below the bound", "reticent/cli/_tables.py", "    return _percent(number.value, up)", "    return _percent(number.value)", "tests/cli/test_risk.py::test_the_first_table_needs_no_more_than_epsilon"),
    Mutant("claims: all conditions have to fail", "reticent/proofs/claims.py", "Claim.CONDITIONAL if any(", "Claim.CONDITIONAL if conditions and all(", CLAIMS),
    Mutant("claims: what is declared counts as checked", "reticent/proofs/conditions.py", "return self.status is not Status.CHECKED and self.bearing in (Bearing.DATA, Bearing.ATTACKER)", "return self.status is Status.ASSUMED and self.bearing in (Bearing.DATA, Bearing.ATTACKER)", CLAIMS),
    Mutant("claims: conditions about the attacker do not count", "reticent/proofs/conditions.py", "self.bearing in (Bearing.DATA, Bearing.ATTACKER)", "self.bearing is Bearing.ATTACKER", CLAIMS),
    Mutant("claims: an unknown source vouches", "reticent/proofs/conditions.py", "statuses.get(one.key, one.status)", "statuses.get(one.key, Status.CHECKED)", CLAIMS),
    Mutant("claims: a policy need not accept what was declared of the release", "reticent/proofs/conditions.py", "return self.status is not Status.CHECKED and self.bearing is not Bearing.GENERAL", "return self.weakens", CLAIMS),
    Mutant("claims: an approximation is a proof", "reticent/proofs/claims.py", "if basis is Basis.APPROXIMATION:\n        return Claim.ESTIMATE\n", "", CLAIMS),
    Mutant("certificates: every attacker is assessed twice", "reticent/certificates/build.py", "progress=progress, found=found)", "progress=progress)", "tests/certificates/test_certificate.py::test_each_attacker_is_assessed_once"),
    Mutant("best: a proof with more conditions counts under fewer", "reticent/proofs/proof.py", "other.needs <= one.needs", "other.needs >= one.needs", BEST),
    Mutant("best: all conditions are one set", "reticent/proofs/proof.py", "if one.needs not in answers:", "if not answers:", BEST),
    Mutant("best: the larger upper end", "reticent/proofs/proof.py", "curve = theirs if not _is_below(mine, theirs) else strictest([mine, theirs])", "curve = mine", BEST),
    Mutant("best: only one of two curves that cross", "reticent/proofs/proof.py", "curve = theirs if not _is_below(mine, theirs) else strictest([mine, theirs])", "curve = theirs", BEST),
    Mutant("best: a stronger attacker's lower end", "reticent/proofs/proof.py", "enclosure=Enclosure.from_above(self.enclosure.pessimistic), mu=(0.0, self.mu[1])", "mu=(0.0, self.mu[1])", BEST),
    Mutant("best: theorems of what was intersected are not named", "reticent/proofs/proof.py", "met.citing(*other.theorems).under", "met.under", BEST),
    Mutant("best: a contradiction goes unsaid", "reticent/proofs/proof.py", "both = Enclosure.checked(curve, known.optimistic,", "both = Enclosure(curve, known.optimistic,", BEST),
    Mutant("references: a theorem may be cited that nobody listed", "reticent/proofs/references.py", "if key not in THEOREMS:", "if False:", BEST),
    Mutant("relaxed: what was stated counts as assumed", "reticent/adversaries/relaxed/adversary.py", "dict.fromkeys(found.needs, Status.DECLARED)", "dict.fromkeys(found.needs, Status.ASSUMED)", CONDITIONS),
    Mutant("relaxed: adaptive queries are one query", "reticent/adversaries/relaxed/fixed_length.py", 'needs = () if count == 1 else ("fixed-length",)', "needs = ()", CONDITIONS),
    Mutant("relaxed: training needs nothing", "reticent/adversaries/relaxed/fixed_length.py", "found = _common(asked, strength, asked.dimension or 1)", "found = _common(asked, strength, asked.dimension or 1, ())", CONDITIONS),
    Mutant("relaxed: sampled training needs nothing", "reticent/adversaries/relaxed/fixed_length.py", "return asked.proof(relaxed_in(run, dimension), keys, of_a_sign if dimension == 1 else ())", "return asked.proof(relaxed_in(run, dimension), keys, of_a_sign if dimension == 1 else (), ())", CONDITIONS),
    Mutant("relaxed: directions of a person need nothing", "reticent/adversaries/relaxed/fixed_length.py", 'found.under(condition("independent-directions")).saying(_APART)', "found.saying(_APART)", CONDITIONS),
    Mutant("mixed: the relaxed type without its conditions", "reticent/adversaries/mixed.py", "return replace(proof, enclosure=mixed, theorems=theorems)", "return replace(proof, enclosure=mixed, theorems=theorems, conditions=mechanism.conditions)", CONDITIONS),
    Mutant("reacting: a known share needs nothing", "reticent/adversaries/relaxed/reacting_gradients.py", 'needs += ["known-share"] if share else []', "needs += []", CONDITIONS),
    Mutant("reacting: directions of a person need nothing", "reticent/adversaries/relaxed/reacting_gradients.py", 'needs += ["independent-directions"] if person else []', "needs += []", CONDITIONS),
    Mutant("reacting: a network answers as a head", "reticent/adversaries/relaxed/direction_unknown.py", "self.gradients in FORMS and self.gradients not in form.ensured", "False and self.gradients not in form.ensured", CONDITIONS),
    Mutant("reacting: less is known than was seen", "reticent/adversaries/relaxed/direction_unknown.py", "self.known_share < form.known_share", "self.known_share > form.known_share", CONDITIONS),
    Mutant("reacting: more dimensions than features", "reticent/adversaries/relaxed/direction_unknown.py", "self.dimension > form.dimension", "self.dimension > 2 * form.dimension", CONDITIONS),
    Mutant("reacting: features that nobody saw", "reticent/mechanisms/gradients.py", 'self.kind is not Gradients.ANY and self.features == "same"', "self.kind is not Gradients.ANY", CONDITIONS),
    Mutant("attribute: a stated change needs nothing", "reticent/adversaries/attribute/cases.py", 'return () if free else (condition("bounded-change", Status.DECLARED),)', "return ()", CONDITIONS),
    Mutant("attribute: audited records stand for all", "reticent/adversaries/attribute/cases.py", "if self.basis is not Basis.PROOF or self.record.scope is Scope.WHOLE_DATA:", "if True:", CONDITIONS),
    Mutant("draws that amplify may be seen", "reticent/mechanisms/dpsgd.py", "return () if self._whole or public else", "return () if self._whole or self.sampler is not Sampler.POISSON else", CONDITIONS),
    Mutant("a run that stopped counts what ran", "reticent/records/run_ledger.py", "planned = replace(self._equal_steps(), steps=max(self.steps, self.planned_steps))", "planned = self._equal_steps()", "tests/records/test_vouched.py"),
    Mutant("a run that stopped: the noise of its first step", "reticent/records/run_ledger.py", "return min(noises), max(rates), min(norms)", "return noises[0], max(rates), min(norms)", "tests/records/test_vouched.py"),
    Mutant("headline: draws may be seen", "reticent/certificates/sentences.py", 'return [about(HIDDEN_DRAWS, records)] if drawn and hides else []', "return []", "tests/certificates/test_sentences.py"),
    Mutant("sentence: without its condition", "reticent/certificates/sentences.py", "needs = [one.known.says for one in record.conditions if one.known.weakens]", "needs: list[str] = []", "tests/certificates/test_sentences.py"),
    Mutant("power: rounding", "reticent/accountants/_power.py", "np.roll(mass, (peak - first) % points), 0.0), float(rounding)", "np.roll(mass, (peak - first) % points), 0.0), 0.0", TERMS + "::test_power_bounds_its_rounding"),
    Mutant("power: mass outside", "reticent/accountants/_power.py", "    return float(np.exp(best))", "    return 0.0", TERMS + "::test_mass_outside_a_window_is_bounded"),
    Mutant("lattice: error of one step", "reticent/accountants/lattice.py", "_STEP_ERROR = 64 * EPS", "_STEP_ERROR = 0.0 * EPS", TERMS + "::test_one_step_of_a_lattice_is_known_to_its_stated_error"),
    Mutant("lattice: errors of all steps", "reticent/accountants/lattice.py", "lost_q + ups.slack + rounding", "lost_q + ups.slack", TERMS + "::test_every_step_adds_its_error_to_a_lattice"),
    Mutant("split: large steps are no small ones", "reticent/accountants/split.py", "small, step.count - most)", "small, step.count)", SPLIT + "::test_steps_that_are_large_are_no_small_ones"),
    Mutant("split: more large steps than counted", "reticent/accountants/split.py", "_weakened(weaker, self.failed)", "_weakened(weaker, -700.0)", SPLIT + "::test_more_large_steps_than_counted_are_paid_for"),
    Mutant("laws: nodes left out", "reticent/pairs/sampled_gaussian.py", "        return sum(math.exp(min(tail, 700.0)) for tail in tails)", "        return 0.0", TERMS + "::test_nodes_left_out_are_paid_for"),
    Mutant("laws: rule", "reticent/pairs/sampled_gaussian.py", "error = rule + steady.rest[0]", "error = 0.0 * rule + steady.rest[0]", LAWS),
    Mutant("laws: what a cut contour leaves", "reticent/pairs/sampled_gaussian.py", "np.cumsum(along[:, top:], axis=1) + side[:, top:] + np.cumsum(mass[top:][::-1])[::-1]", "np.cumsum(along[:, top:], axis=1)", LAWS + "::test_a_contour_that_is_cut_pays_for_what_it_leaves"),
    Mutant("transform: a test asked less often", "reticent/accountants/readings.py", "np.log(delta * (1.0 - _SLACK)) - fpr.upper)", "np.log(delta * (1.0 - _SLACK)) - fpr.lower)", COMPOSE + "::test_a_test_that_is_asked_less_often_is_no_stronger"),
    Mutant("certified: rule", "reticent/accountants/advantage_alone.py", "off = law.rule(0.5, t) + real.rest[0]", "off = real.rest[0]"),
    Mutant("certified: nodes without sines", "reticent/accountants/advantage_alone.py", "law.turning(tilted) * t + left_out", "law.turning(tilted) * t", TERMS + "::test_nodes_without_sines_are_paid_for"),
    Mutant("certified: alias", "reticent/accountants/advantage_alone.py", "max(value - slack - alias, 0.0)", "max(value - slack, 0.0)"),
    Mutant("affinity: radius", "reticent/accountants/affinity.py", "    return trapezoid + 2.0 * (right + left)", "    return 0.0 * (right + left)"),
    Mutant("affinity: truncated tails", "reticent/accountants/affinity.py", "    return trapezoid + 2.0 * (right + left)", "    return trapezoid"),
    Mutant("cheap bounds: what the grid misses, above", "reticent/accountants/bounds.py", "np.logaddexp(_least_chernoff(logs, size, thresholds), math.log(max(lost, TINY)))", "_least_chernoff(logs, size, thresholds)"),
    Mutant("cheap bounds: what the grid misses, below", "reticent/accountants/bounds.py", "np.logaddexp(fnr, math.log(max(lost, TINY)))", "fnr"),
    Mutant("cut moments: probability left out", "reticent/accountants/cut_moments.py", "* lost / step.count\n", "* 0.0\n"),
    Mutant("cut moments: lower end of a cell", "reticent/accountants/cut_moments.py", "np.maximum(excess[:, :-1], excess[:, 1:])", "excess[:, :-1]"),
    Mutant("contour: aliases", "reticent/accountants/contour.py", "        images = self._right(thresholds, log_factor) + self._left(thresholds, log_factor)\n        return _ordered([(scale * total", "        images = 0.0 * thresholds\n        return _ordered([(scale * total", ENCLOSURE),
    Mutant("polygons: a tail that is not followed backwards", "reticent/curves/polygon.py", "for rates in (self.vertices, self.reversed.vertices)", "for rates in (self.vertices,)", POLYGON + "::test_a_tail_that_is_left_out_backwards_is_not_reached"),
    Mutant("contour: what is left of a delta next to 1", "reticent/accountants/readings.py", "if apart and 0.0 < contour.c < 1.0:", "if False:", REFEREE + "::test_no_privacy_is_said_in_digits"),
    Mutant("transform: the last contour does not serve on", "reticent/accountants/transform.py", "            try:\n                found.append(self._block(last, low, high))", "            try:\n                raise NumericalError(\"none\")", ROUTES + "::test_a_contour_that_cannot_be_had_is_told_and_the_one_before_it_serves"),
    Mutant("worst case: only one direction of a single delta", "reticent/accountants/compose.py", "return max(way[0] for way in known), max(way[1] for way in known)", "return known[-1]", ROUTES + "::test_a_question_of_one_delta_has_digits_in_both_directions"),
    Mutant("lattices: as fine as a small advantage asks", "reticent/accountants/enclose.py", "self.relative * advantage", "self.width", NEAR_ATOMIC + "::test_a_small_advantage_is_known_to_some_digits"),
    Mutant("diameters: rounding of distances to a centre", "reticent/sensitivity/diameter.py", "+ roundings * (product + half)", "- roundings * (product + half)", "tests/sensitivity/test_recorder.py::test_diameters_of_random_sets"),
    Mutant("estimates: a lattice that wraps around", "reticent/accountants/lattice_estimate.py", "max(20.0 * spread, 2.0 * furthest)", "20.0 * spread", ROUTES + "::test_a_lattice_of_estimates_does_not_wrap_around"),
    Mutant("contour: roundings of a long sum", "reticent/accountants/contour.py", "blur = len(sizes) + 64.0", "blur = 64.0"),
    Mutant("contour: truncation", "reticent/accountants/contour.py", "error + tail * self.beyond / np.pi", "error", ENCLOSURE),
    Mutant("sign lattice: reach", "reticent/adversaries/relaxed/sign/lattice.py", "steps * noise.lost", "0.0", SIGNS),
    Mutant("sign lattice: rounding of delta", "reticent/adversaries/relaxed/sign/lattice.py", "rounding * (q + grown * p)", "0.0", SIGNS),
    Mutant("sign lattice: rounding of tests", "reticent/adversaries/relaxed/sign/lattice.py", "_tests(plan, thresholds, lost + rounding)", "_tests(plan, thresholds, lost)", SIGNS),
    Mutant("sign lattice: powers, delta", "reticent/adversaries/relaxed/sign/lattice.py", "+ slack_present + grown * slack_absent", "", SIGNS),
    Mutant("sign lattice: powers, tests", "reticent/adversaries/relaxed/sign/lattice.py", "+ slack_absent + lost", "+ lost", SIGNS),
    Mutant("sign lattice: reach of one kind of step", "reticent/adversaries/relaxed/sign/lattice.py", "sum(steps * noise.lost for noise, steps in kinds)", "kinds[0][1] * kinds[0][0].lost", SCHEDULES),
    Mutant("sign lattice: rounding of one kind of step", "reticent/adversaries/relaxed/sign/lattice.py", "sum(steps for _, steps in kinds) * _ROUNDING", "kinds[0][1] * _ROUNDING", SCHEDULES),
    Mutant("powers: rounding of one part", "reticent/accountants/_power.py", "        relative += count * (np.log1p", "        relative = count * (np.log1p", SCHEDULES),
    Mutant("sign transform: all copies", "reticent/adversaries/relaxed/sign/transform.py", "+ error + alias, 0.0, 1.0)", "+ error, 0.0, 1.0)", SIGNS),
    Mutant("sign transform: copies beside", "reticent/adversaries/relaxed/sign/transform.py", "    return beside + _above_in_b", "    return 0.0 * beside + _above_in_b", SIGNS),
    Mutant("sign transform: copies above", "reticent/adversaries/relaxed/sign/transform.py", "(line - theta) * period)\n\n", "(line - theta) * period) * 0.0\n\n", SIGNS),
    Mutant("sign transform: copies below", "reticent/adversaries/relaxed/sign/transform.py", "_geometric((theta - line) * period)", "0.0", SIGNS),
    Mutant("sign transform: frequencies left out", "reticent/adversaries/relaxed/sign/transform.py", "(plan.outside + float(far))", "float(far)", SIGNS),
    Mutant("sign transform: rounding", "reticent/adversaries/relaxed/sign/transform.py", "(truncation + EPS * size)", "truncation", SIGNS),
    Mutant("chain through norms: the factor of addition", "reticent/adversaries/relaxed/dimension/enclose.py", "np.logaddexp(later + norms.log_delta(first), joined)", "np.logaddexp(norms.log_delta(first), joined)", CUT + "::test_the_chain_by_way_of_a_third_law"),
    Mutant("chain through norms: the factor of removal", "reticent/adversaries/relaxed/dimension/enclose.py", "first + parted), axis=1)", "parted), axis=1)", CUT + "::test_the_chain_by_way_of_a_third_law"),
    Mutant("caps: parts of two steps and more are not paid for", "reticent/adversaries/relaxed/dimension/overlaps.py", "np.exp(log_sets[i]) * beyond)", "np.exp(log_sets[i]) * beyond * (n == 1))", CUT + "::test_what_is_dropped_is_counted_for_every_part_of_the_mask"),
    Mutant("caps: over norms, overlaps of two steps show nothing", "reticent/adversaries/relaxed/dimension/overlaps.py", "np.where(n == 1, -np.inf, whole)", "np.where(n <= 2, -np.inf, whole)", CUT + "::test_cut_moments_bound_simulated_advantages"),
    Mutant("polygons of one step: chords on both sides", "reticent/adversaries/relaxed/dimension/norms.py", "return Sides(polygon_above(thresholds, log_delta), polygon_through(", "return Sides(polygon_through(points.at(slice(None, None, -1))), polygon_through(", CUT + "::test_polygons_of_one_step_enclose_it_closely"),
    Mutant("polygons of one step: rounding", "reticent/adversaries/relaxed/dimension/norms.py", "_ROUNDING = 4e-12", "_ROUNDING = -4e-12", CUT + "::test_polygons_of_one_step_enclose_it_closely"),
    Mutant("one normal: moments of the ratio", "reticent/adversaries/relaxed/dimension/one_normal.py", "0.5 * q * float(", "0.49 * q * float(", ONE_NORMAL),
    Mutant("one normal: scale of the ratio itself", "reticent/adversaries/relaxed/dimension/one_normal.py", "a = (1.0 + _MORE) / np.sqrt(spread)", "a = 0.98 / np.sqrt(spread)", ONE_NORMAL),
    Mutant("whole users: J J' is their smaller one", "reticent/adversaries/relaxed/dimension/whole_user.py", "counts * x[:, None]", "np.sqrt(counts) * x[:, None]", PERSONS),
    Mutant("whole users: chords without the mean", "reticent/adversaries/relaxed/dimension/whole_user.py", "+ _SHARE, 0.0, 1.0)", "- 0.5, 0.0, 1.0)", PERSONS),
    Mutant("whole users: several records in the sum of one step", "reticent/adversaries/relaxed/dimension/attacks_from_below.py", "more * (each + 1) ** 2", "more * (each + 2) ** 2", PERSONS),
    Mutant("rare events: the revealed mask, two of its steps less", "reticent/adversaries/relaxed/dimension/revealed_mask.py", "noncentrality = law.high[some, None] / noise**2", "noncentrality = np.maximum(law.high[some, None] - 1, 1) / noise**2", TAIL),
    Mutant("shuffled: an epoch that was begun", "reticent/mechanisms/dpsgd.py", "-(-run.steps // batches_per_epoch(run))", "max(1, run.steps // batches_per_epoch(run))", SAMPLERS + "::TestShuffled::test_a_record_is_seen_at_most_once_per_counted_epoch"),
    Mutant("fixed size: the displaced record moves too", "reticent/mechanisms/dpsgd.py", "return 2.0 if run.sampler.displaces else neighbouring.sensitivity", "return neighbouring.sensitivity", COMPOSE + "::test_fixed_size_batches_use_what_is_proven"),
    Mutant("theorem cited under replacement", "reticent/mechanisms/dpsgd.py", '"RETICENT:replace-dominance" if replaced else', '"ZHU2022:Proposition 30" if replaced else', ADVERSARIES + "::test_each_relation_cites_its_own_theorem"),
    Mutant("a step forgotten", "reticent/mechanisms/dpsgd.py", "return (Part(pair, run.steps, (key, *epoch_theorems(self))),)", "return (Part(pair, max(run.steps - 1, 1), (key, *epoch_theorems(self))),)", NEAR_ATOMIC + "::test_some_near_atomic_runs"),
    Mutant("estimates: losses beyond the window", "reticent/accountants/profile.py", "self.reliable and bool(self._law.beyond(self.window) < DOUBT)", "self.reliable", COMPOSE + "::test_an_estimate_knows_its_error"),
    Mutant("estimates: a transform that does not decay", "reticent/accountants/profile.py", "            self.sure = False\n            self.reliable = start", "            self.reliable = start", COMPOSE + "::test_an_estimate_knows_its_error"),
    Mutant("estimates: losses beyond the window of a map", "reticent/accountants/advantage_map.py", " & (law.beyond(law.window) < DOUBT)", "", COMPOSE + "::test_an_estimate_knows_its_error"),
    Mutant("stopping: a checkpoint that goes on", "reticent/stopping.py", "        raise Stopped\n", "        pass\n", "tests/dashboard/test_turns.py::test_a_newer_question_ends_a_computation_at_its_next_checkpoint"),
    Mutant("fast values: the first frequency", "reticent/accountants/profile.py", "self._kernel[0] *= 0.5", "self._kernel[0] *= 0.5001", COMPOSE + "::test_fast_values_lie_in_the_enclosure"),
    Mutant("common sign: slope", "reticent/adversaries/relaxed/sign/join.py", "GaussianSign(run.sample_rate, 1.0 / run.noise_multiplier, run.records)", "GaussianSign(run.sample_rate, 0.98 / run.noise_multiplier, run.records)", COMMON_SIGN + "::test_figure_7_is_where_it_belongs"),
    Mutant("common sign: slope, few steps", "reticent/adversaries/relaxed/sign/join.py", "GaussianSign(run.sample_rate, 1.0 / run.noise_multiplier, run.records)", "GaussianSign(run.sample_rate, 0.98 / run.noise_multiplier, run.records)", SIGN_LATTICE + "::test_two_steps_are_tight"),
    Mutant("common sign: fixed batches get no relief", "reticent/adversaries/relaxed/sign/join.py", "    if any(run.sampler.tells_all for run in runs):\n        return compose(mechanism, Neighbouring.ADD_REMOVE)\n", "", COMMON_SIGN + "::test_other_samplers_claim_only_what_is_established"),
    Mutant("affinity: half of the nodes", "reticent/accountants/affinity.py", "count = np.ceil(width / step).astype(int) + 1", "count = np.ceil(0.5 * width / step).astype(int) + 1", CLOSED_FORMS + "::test_affinity_is_enclosed"),
    Mutant("membership game: data used again", "reticent/adversaries/game/adversary.py", "mechanism.steps * mechanism.sample_rate <= 1.0 + 1e-9", "mechanism.steps * mechanism.sample_rate <= 1.7", GAME + "::test_reused_data_are_the_worst_case"),
    Mutant("Corollary 10 as printed", "reticent/adversaries/attribute/cases.py", "squares = [p.steps * _square(p.rate * p.change / p.noise)", "squares = [p.steps * _square(p.change / p.noise)", ATTRIBUTE + "::test_corollary_10_is_reproduced"),
    Mutant("calibration: the unsafe end", "reticent/calibration/solve.py", "best, gap = edge.safe\n", "best, gap = edge.unsafe or edge.safe\n", CALIBRATE + "::test_worst_case_targets_are_met_and_tight"),
    Mutant("calibration of whole numbers: one more", "reticent/calibration/solve.py", "return safe, self.claim(safe), 0.0 if safe >= high else 1.0 / safe", "return safe + 1, self.claim(safe), 0.0 if safe >= high else 1.0 / safe", CALIBRATE + "::test_whole_numbers_stop_just_before_the_edge"),
    Mutant("recorder: slack of changes", "reticent/sensitivity/recorder.py", "slack = 2.0 * self._meter.slack * math.sqrt(max(self.steps, 1))", "slack = 0.0", RECORDER + "::test_every_step_adds_its_slack"),
    Mutant("recorder: slack of mask terms", "reticent/sensitivity/recorder.py", "mask_slack = 2.0 * math.sqrt(float(worst_mask_term(self._meter.slack, self._noise)) * max(self.steps, 1))", "mask_slack = 0.0", RECORDER + "::test_every_step_adds_its_slack"),
    Mutant("recorder: slack under a budget", "reticent/sensitivity/recorder.py", "            slack = 2.0 * math.sqrt(float(worst_mask_term(self._meter.slack, self._noise)))", "            slack = 0.0", RECORDER + "::test_a_budget_pays_the_slack_of_each_step_beforehand"),
    Mutant("sensitivity: clip norm", "reticent/sensitivity/meter.py", "self._engine.measure(features, labels, self._clip)", "self._engine.measure(features, labels, 1.0)", TRUST + "::test_equal_to_brute_force"),
    Mutant("sensitivity: reach of the triangle inequality", "reticent/sensitivity/dense.py", "radii.topk(2, dim=1).values.sum(1)", "radii.topk(1, dim=1).values.sum(1)", SENSITIVITY + "::test_pruning_is_exact"),
    Mutant("whole users: replacement by nobody", "reticent/pairs/whole_user.py", "absent = -1.0 if self.antipodal else 0.0", "absent = 0.0", WHOLE_USERS + "::test_one_step_by_quadrature"),
    Mutant("revealed mask: counts left out", "reticent/adversaries/relaxed/dimension/revealed_mask.py", "lost = np.exp(law.log_above) + np.exp(law.log_below)", "lost = 0.0", DIMENSIONS + "::test_told_mask_is_an_upper_bound_and_tight"),
    Mutant("rank p-value: lower edge of a cell", "reticent/auditing/thresholds.py", "claim.beta(edges), 0.0, 1.0)", "claim.beta(np.append(0.0, edges[:-1])), 0.0, 1.0)", STATISTICS + "::test_rank_p_value_is_the_integral_from_above"),
    Mutant("mechanics: each layer may be clipped by itself", "reticent/attacks/sum_checks.py", 'Check("spread gradients", float(_upper_tail(total, trials, claim)[0]), finding)', 'Check("spread gradients", 1.0, finding)', WHITE_BOX + "::test_each_planted_bug_is_found"),
    Mutant("one run: a tie knows who took part", "reticent/auditing/one_run.py", "np.lexsort((coins(*values), -np.concatenate(values)))", "np.lexsort((~included, -np.concatenate(values)))", ONE_RUN + "::test_equal_scores_are_decided_by_a_fair_coin"),
    Mutant("normal scores: drawn without the claim", "reticent/auditing/normal_scores.py", "np.clip(claim.beta(false_positives[:, ::-1]), 0.0, 1.0)", "1.0 - false_positives[:, ::-1]", "tests/auditing/test_normal_scores.py"),
    Mutant("normal scores: the seen sample is none of the drawn", "reticent/auditing/normal_scores.py", "(1 + as_much) / (1 + _DRAWS)", "as_much / _DRAWS", "tests/auditing/test_normal_scores.py::test_a_larger_claim_explains_more_and_the_order_of_the_file_does_not_matter"),
    Mutant("normal scores: gaps of the whole sample", "reticent/auditing/normal_scores.py", "np.diff(_kept(size), prepend=0, append=size + 1)", "np.ones(len(_kept(size)) + 1)", "tests/auditing/test_normal_scores.py::test_kept_order_statistics_have_their_beta_laws"),
    Mutant("short gradients: the mean costs no degree of freedom", "reticent/attacks/short_gradients.py", "(times - 1).sum()", "times.sum()", "tests/attacks/test_short_gradients.py"),
    Mutant("one run: only epsilon 0 decides", "reticent/auditing/one_run.py", "for e in grid[::-1] if", "for e in grid[:1] if", ONE_RUN + "::test_no_bound_is_zero_because_delta_is_large_at_epsilon_zero"),
    Mutant("one run: delta counts guesses, not canaries", "reticent/auditing/one_run.py", "budget = counts.canaries * delta", "budget = counts.guesses * delta", ONE_RUN + "::test_what_delta_adds_is_the_worst_of_all_joint_laws"),
    Mutant("one run: a third of the guesses for every claim", "reticent/auditing/one_run.py", "return _SHARES[int(np.argmax(bounds))]", "return _SHARES[5]", ONE_RUN + "::test_the_share_of_guesses_follows_the_claim_and_the_number_of_canaries"),
    Mutant("replay: weights at the end are not looked at", "reticent/attacks/replay.py", "if moved > _SAME_WEIGHTS:", "if moved > 1e9:", REPLAY + "::test_each_fault_that_depends_on_the_data_is_seen_by_its_replay"),
    Mutant("replay: what other records add is not looked at", "reticent/attacks/replay.py", "if others.size and others.max() > tolerance:", "if others.size > 10**9:", REPLAY + "::test_each_fault_that_depends_on_the_data_is_seen_by_its_replay"),
    Mutant("replay: randomness is not given back", "reticent/attacks/replay.py", "        torch.set_rng_state(states[0])\n", "", REPLAY + "::test_everything_that_is_drawn_is_replayed_and_goes_on_afterwards"),
    Mutant("mechanics: tails up to two deviations", "reticent/attacks/noise_checks.py", "_TAILS = (2.5, 3.0, 3.5)", "_TAILS = (1.0, 1.5, 2.0)", NOISE_CHECKS + "::test_a_cut_and_a_heavy_tail_are_found"),
    Mutant("mechanics: stronger clipping looks like another rate", "reticent/attacks/mechanics.py", "seen.replayed.counted < 0.99", "seen.replayed.counted < 0.0", WHITE_BOX + "::test_stronger_clipping_is_named_and_not_accused"),
    Mutant("mechanics: single precision", "reticent/attacks/mechanics.py", "np.asarray(sums, dtype=np.float64)", "np.asarray(sums)", WHITE_BOX + "::test_single_precision_is_no_fault"),
    Mutant("mechanics: weights between steps", "reticent/attacks/sum_checks.py", "if first > 10.0 * _SAME * size:", "if first > 1e9 * size:", NOISE_CHECKS + "::test_weights_may_decay_between_steps_and_may_not_follow_the_records"),
    Mutant("mechanics: noise of the batch's own coordinates only", "reticent/attacks/participation.py", "_OFFSETS = range(17)", "_OFFSETS = range(1)", PARTICIPATION + "::test_noise_that_knows_the_batch_is_found"),
    Mutant("condition: the weights after the release", "reticent/attacks/reacting.py", "perceptron_scores(release[:, None], weights[:, None]", "perceptron_scores(release[:, None], (weights + release)[:, None]", "tests/attacks/test_reacting_game.py::test_without_the_record_the_scores_are_standard_normal"),
    Mutant("screen: one per cent more", "reticent/dashboard/screen.py", "_followed(thresholds, profile.delta(thresholds)", "_followed(thresholds, 1.01 * profile.delta(thresholds)", SCREEN + "::test_what_is_drawn_first_is_near_what_is_proven"),
    Mutant("screen: a share of an unknown sign", "reticent/dashboard/screen.py", "share = adversary.relaxed_probability", "share = 0.9 * adversary.relaxed_probability", SCREEN + "::test_an_unknown_sign_is_drawn_near_what_is_proven"),
    Mutant("verify: curves are not compared", "reticent/certificates/verify.py", "if path[0] in _NOT_DERIVED:", 'if path[0] in _NOT_DERIVED or "curve" in path:', VERIFY + "::test_a_forgery_is_refused"),
    Mutant("verify: what hides risk", "reticent/certificates/verify.py", "state = State.TAMPERED if why is None else State.CHANGED", "state = State.CHANGED", VERIFY + "::test_no_derived_leaf_can_be_changed"),
    Mutant("watch: the smaller of the pieces' clip norms", "reticent/watching/private_loop.py", "max((piece[3] for piece in pieces), default=1.0)", "min((piece[3] for piece in pieces), default=1.0)", BUGS + "::test_pieces_of_a_step_count_with_the_largest_clip_norm"),
    Mutant("watch: many noise levels rounded up", "reticent/watching/steps.py", "lowest[index - index % stride]", "lowest[min(index - index % stride + stride, len(lowest) - 1)]", BUGS + "::test_very_many_levels_of_noise_are_rounded_down"),
    Mutant("watch: noise of the adaptive count", "reticent/watching/optimisers.py", "(size / 10.0) ** -2", "(size / 5.0) ** -2", BUGS + "::test_gradient_and_count_of_adaptive_clipping_are_one_release"),
    Mutant("watch: weights after the last step", "reticent/watching/moves.py", "        if complete:\n            self._compare(", "        if False:\n            self._compare(", BUGS + "::test_weights_overwritten_after_the_last_step"),
    Mutant("watch: a stated rate without Poisson", "reticent/watching/recorder.py", "return said if self._said in (Drawn.POISSON, Drawn.FIXED_SIZE) else None", "return said", BUGS + "::test_a_stated_rate_counts_only_with_poisson"),
    Mutant("watch: identity of parameters", "reticent/watching/weights.py", "            if where.get(name) is not p:\n", "            if False:\n", BUGS + "::test_another_object_on_the_same_memory_is_a_write"),
    Mutant("watch: values of parameters", "reticent/watching/weights.py", "or part.tobytes() != was or", "or", FALSE_UPDATES + "::TestHiddenWrites"),
    Mutant("watch: the window stays", "reticent/watching/weights.py", "turn = self._turn + 1", "turn = self._turn + 0", BUGS + "::test_windows_on_a_large_tensor_hit_each_row_and_move_on"),
    Mutant("watch: rows that no window hits", "reticent/watching/weights.py", "row = min(p[0].numel() if p.dim() > 1 else p.numel(), p.numel() // _FEWEST)", "row = p.numel() // _FEWEST", BUGS + "::test_windows_on_a_large_tensor_hit_each_row_and_move_on"),
    Mutant("watch: parameters exchanged at the end", "reticent/watching/moves.py", "        if self._weights.exchanged():\n            self._found(Fault.WEIGHTS_CHANGED)\n", "", FALSE_UPDATES + "::TestHiddenWrites"),
    Mutant("watch: hooks after ours", "reticent/watching/moves.py", "                before.move_to_end(self._before.id)\n", "                pass\n", FALSE_UPDATES + "::TestReplaced"),
    Mutant("watch: gradients exchanged after the noise", "reticent/watching/noise.py", "if p.grad is not grad or grad._version != version:", "if grad._version != version:", FALSE_UPDATES + "::TestReplaced"),
    Mutant("watch: gradients written by data", "reticent/watching/noise.py", "return bool(values) and not all(", "return False and not all(", FALSE_UPDATES + "::TestReplaced"),
    Mutant("watch: half of the noise", "reticent/watching/noise.py", "return length >= _least(count) and self._length >= _least(self._count)", "return length >= _least(count)", FALSE_UPDATES + "::TestReplaced"),
    Mutant("watch: methods replaced on the object", "reticent/watching/optimisers.py", 'return kind if same and not _replaced(optimizer) else "unknown"', 'return kind if same else "unknown"', FALSE_UPDATES + "::TestReplaced"),
    Mutant("watch: secure mode without a generator", "reticent/watching/optimisers.py", "secure_mode = getattr(optimizer, \"secure_mode\", False) and optimizer.generator is not None", "secure_mode = getattr(optimizer, \"secure_mode\", False)", FALSE_NOISE),
    Mutant("watch: a seed of 2^31", "reticent/watching/seeds.py", "seed < _SMALL or seed % _SMALL < _TINY", "seed < _SMALL // 2 or seed % _SMALL < _TINY", BUGS + "::test_seeds_that_can_be_guessed"),
    Mutant("watch: two batches in one backward pass", "reticent/watching/moves.py", "if getattr(p, \"_forward_counter\", 0):", "if False:", FALSE_UPDATES + "::TestBuffersAndMixing"),
    Mutant("watch: a seed whose lower half is 0", "reticent/watching/seeds.py", "seed < _SMALL or seed % _SMALL < _TINY", "seed < _SMALL", BUGS + "::test_seeds_that_can_be_guessed"),
    Mutant("watch: the seed of a new generator", "reticent/watching/seeds.py", "< _TINY or seed == _OF_A_NEW_ONE", "< _TINY", BUGS + "::test_seeds_that_can_be_guessed"),
    Mutant("watch: a seed set during the run", "reticent/watching/seeds.py", "guessable(now) or (now != self._first and not generators.from_the_system(now))", "guessable(now)", BUGS + "::test_a_seed_that_changes_while_it_is_watched_was_set"),
    Mutant("watch: noise drawn twice", "reticent/watching/seeds.py", "return most is not None and not here and (block != last[1] or at <= most)", "return False", BUGS + "::test_a_generator_that_goes_back_is_seen_at_any_offset"),
    Mutant("watch: gradients that wait since before", "reticent/watching/optimisers.py", 'return any(found is not None and not hasattr(found, "_processed") for found in sums)', "return False", LOOPS + "::TestPhases"),
    Mutant("watch: batches drawn again", "reticent/watching/recorder.py", "if self.draw_seeds.shown(coins):", "if coins.public:", FALSE_NOISE),
    Mutant("watch: a generator that went back further", "reticent/watching/seeds.py", "(block != last[1] or at <= most)", "at == most", BUGS + "::test_a_generator_that_goes_back_is_seen_at_any_offset"),
    Mutant("watch: a state set back between two looks", "reticent/watching/generators.py", "return last is not None and here is not last", "return False", FALSE_NOISE),
    Mutant("watch: a state that is set and repeats nothing", "reticent/watching/generators.py", "_put(self, _READ.get(_number(new_state), {}))", "_put(self, {})", FALSE_NOISE),
    Mutant("watch: no look right after noise", "reticent/watching/private_loop.py", "self.noise_seeds.arrive()", "pass", FALSE_NOISE),
    Mutant("watch: back before a watch began", "reticent/watching/seeds.py", "draw.repeats() or self._back is draw.stream", "draw.repeats()", BUGS + "::test_a_generator_that_went_back_before_the_next_watch_began"),
    Mutant("watch: weights written before an error", "reticent/watching/session.py", "if settled else None", "", "tests/watching/test_opacus_loops.py::test_a_watch_that_is_entered_again_after_an_error_goes_on"),
    Mutant("watch: methods of generators stay ours", "reticent/watching/generators.py", "        _write(_METHODS)\n", "        pass\n", BUGS + "::test_torch_seed_is_put_back"),
    Mutant("watch: public draws amplify", "reticent/records/watched_run.py", "hidden = sampler.drawn is Drawn.POISSON and Fault.PUBLIC_DRAWS not in self.faults", "hidden = sampler.drawn is Drawn.POISSON", BUGS + "::test_draws_that_are_public_amplify_nothing"),
    Mutant("watch: copies of a record", "reticent/records/watched_run.py", "return records if copies in (None, 1) else (records or 1) * (copies or 1)", "return records if copies in (None, 1) else copies", BUGS + "::test_copies_multiply_the_records_of_a_person"),
    Mutant("watch: seeding as before is no way back", "reticent/watching/generators.py", 'for name in ("graphsafe_set_state", "set_offset", "manual_seed")', 'for name in ("graphsafe_set_state", "set_offset")', FALSE_NOISE),
    Mutant("watch: a generator that is exchanged", "reticent/watching/private_loop.py", "if self._optimizer.generator is not self._generator:", "if False:", FALSE_NOISE),
    Mutant("watch: counted writes that did not come back", "reticent/watching/weights.py", "or (large and p._version != version):", "or False:", FALSE_UPDATES + "::TestHiddenWrites"),
    Mutant("watch: gradients at other weights", "reticent/watching/moves.py", "torch.is_grad_enabled() and self._weights.others():", "torch.is_grad_enabled() and False:", FALSE_UPDATES + "::TestHiddenWrites"),
    Mutant("watch: gradients at weights lent by data", "reticent/watching/moves.py", "torch.is_grad_enabled() and self._weights.others():", "torch.is_grad_enabled() and any(count for count, _ in self._weights.writes()):", FALSE_UPDATES + "::TestHiddenWrites"),
    Mutant("watch: a Subset that changes on the way", "reticent/watching/recorder.py", "if listed > (self.sampler.copies or 1):", "if False:", FALSE_UPDATES + "::TestReplaced"),
    Mutant("watch: noise replaced between two entries", "reticent/watching/private_loop.py", "self._known = self._steps + _NOISE_FIRST", "self._known = _NOISE_FIRST", FALSE_UPDATES + "::TestReplaced"),
    Mutant("watch: batches that wait since another watch", "reticent/watching/private_loop.py", "            _WAITING[self._optimizer] = self._pieces\n", "            pass\n", BUGS),
    Mutant("watch: copies below a selection", "reticent/watching/repeats.py", "return places[np.asarray(indices, dtype=np.int64)]", "return np.asarray(indices, dtype=np.int64)", BUGS + "::test_copies_of_a_record_are_counted_through_layers"),
    Mutant("watch: two data sets as one", "reticent/watching/repeats.py", "-(1 + sum(1 << 40 for _ in bases))", "-1", BUGS + "::test_copies_of_a_record_are_counted_through_layers"),
    Mutant("watch: earlier loops left out", "reticent/records/watched_run.py", "        runs = [*self.earlier, self]\n", "        runs = [self]\n", LOOPS + "::TestPhases"),
    Mutant("watch: faults of earlier loops", "reticent/records/watch_start.py", "known = {*later.faults, *first.faults}", "known = {*later.faults}", LOOPS + "::TestPhases"),
    Mutant("watch: a chain that does not meet", "reticent/records/watch_start.py", "if later.start is None or not later.start.opened_by(later.start.salt, first.weights_sha256):", "if later.start is None:", LOOPS + "::TestPhases"),
    Mutant("watch: parts about other parameters as one", "reticent/records/merged.py", 'if f.name not in ("noise_multiplier", "steps", "batches_per_epoch")', 'if f.name not in ("noise_multiplier", "steps", "batches_per_epoch", "num_parameters")', BUGS + "::test_more_than_one_kind_of_loop_in_a_chain_is_merged_with_care"),
    Mutant("watch: state of the optimizer at the start", "reticent/watching/starts.py", "stepped = trainer_step > 0 or has_stepped(optimizer) or known is not None", "stepped = trainer_step > 0 or known is not None", LOOPS + "::TestPhases"),
    Mutant("watch: momentum at the start", "reticent/watching/starts.py", "return any(isinstance(value, torch.Tensor) and bool(value.any()) for value in state.values())", "return False", LOOPS + "::TestPhases"),
    Mutant("watch: a second watch elsewhere", "reticent/watching/starts.py", "stepped = trainer_step > 0 or has_stepped(optimizer) or known is not None", "stepped = trainer_step > 0 or has_stepped(optimizer)", LOOPS + "::TestPhases"),
    Mutant("watch: fresh weights that were changed", "reticent/watching/starts.py", "random = _FRESH.get(self._model) == now", "random = self._model in _FRESH", LOOPS + "::TestPhases"),
    Mutant("watch: passes of entries before", "reticent/watching/recorder.py", "passes=before", "passes=0", LOOPS + "::TestEnteredAgain"),
    Mutant("watch: weights between two entries", "reticent/watching/session.py", "if self._left != models.fingerprint(self._model):", "if self._left is None:", LOOPS + "::TestEnteredAgain"),
    Mutant("watch: updates by hand unlike each other", "reticent/watching/moves.py", "if most > _MOST_WRITES or writes != self._usual or (skipped and most != 1):", "if most > 10**9 or (skipped and most == 10**9):", LOOPS + "::TestWithoutOptimizer"),
    Mutant("watch: buffers", "reticent/watching/recorder.py", "        if self._buffers.learnt():\n", "        if False:\n", FALSE_UPDATES + "::TestBuffersAndMixing"),
    Mutant("watch: records mixed in the forward pass", "reticent/watching/alone.py", "return _differ(together[:1], alone)", "return _differ(together[:1], together[:1])", FALSE_UPDATES + "::TestBuffersAndMixing"),
    Mutant("watch: records mixed in the loss", "reticent/watching/alone.py", "across = float(curvature[1:].abs().max())", "across = float(curvature[:1].abs().min()) * 0", FALSE_UPDATES + "::TestBuffersAndMixing"),
    Mutant("watch: dropout taken for mixing", "reticent/watching/alone.py", "            layer.p = 0.0\n", "            layer.p = 0.5\n", FALSE_UPDATES + "::TestBuffersAndMixing"),
    Mutant("watch: features trained beside the model", "reticent/watching/alone.py", "            self._found(Fault.TRAINED_OUTSIDE)\n", "            pass\n", FALSE_UPDATES + "::TestReplaced"),
    Mutant("watch: a metric steers the learning rate", "reticent/watching/schedules.py", "            found()\n", "            pass\n", FALSE_UPDATES + "::TestReplaced"),
    Mutant("watch: rounding as other noise", "reticent/records/watch_rules.py", "return max(values) > min(values) * (1.0 + 1e-9)", "return max(values) > min(values)", LOOPS + "::TestFalseAlarms"),
    Mutant("watch: any optimizer is let in", "reticent/watching/declared.py", "if own and not any(", "if False and not any(", LOOPS + "::TestFalseAlarms"),
    Mutant("watch: views of a record", "reticent/watching/draws.py", "return 0 < (drawn or self._taken) < size", "return False", ONE_WATCH + "::TestViews"),
    Mutant("watch: a batch once more taken for views", "reticent/watching/draws.py", "return 0 < (drawn or self._taken) < size", "return drawn < size", ONE_WATCH + "::TestViews"),
    Mutant("watch: small batches of another watch taken for views", "reticent/watching/recorder.py", "draws.fewer_than(size - carried)", "draws.fewer_than(size)", BUGS + "::test_small_batches_that_were_broken_off_count_in_the_next_watch"),
    Mutant("watch: two of one model at once", "reticent/watching/one_at_a_time.py", "        if same:\n", "        if False:\n", ONE_WATCH + "::TestOneAtATime"),
    Mutant("watch: one that was refused stays", "reticent/watching/session.py", "            self._look_away()\n            raise\n", "            raise\n", ONE_WATCH + "::TestOneAtATime"),
    Mutant("watch: an optimizer that is exchanged inside", "reticent/watching/moves.py", "            self._hold()\n        if optimizer is self._inner:", "            pass\n        if optimizer is self._inner:", ONE_WATCH + "::TestExchanged"),
    Mutant("watch: steps that wait for each other are lost", "reticent/watching/recorder.py", "        self.catch_up()\n        if not len(self.steps):", "        if not len(self.steps):", ONE_WATCH + "::test_steps_are_written_down_before_anybody_asks"),
    Mutant("watch: steps that wait get the numbers of a later one", "reticent/watching/private_loop.py", "            self.catch_up()\n            self._release =", "            self._release =", ONE_WATCH + "::test_steps_are_written_down_before_anybody_asks"),
    Mutant("watch: passes that began later", "reticent/watching/draws.py", "return Used(count, len(set(numbers)), tuple(range(min(numbers), passes + 1)))", "return Used(count, len(set(numbers)), (min(numbers),))", LOOPS),
    Mutant("watch: more than 32 releases rounded up", "reticent/records/merged.py", "math.exp(step * math.floor(math.log(noise) / step))", "math.exp(step * math.ceil(math.log(noise) / step))", "tests/records/test_merged.py"),
    Mutant("watch: the larger rate of two equal noises", "reticent/records/merged.py", "return [(_SAME(part), noise) for", "return [noise for", "tests/records/test_merged.py"),
    Mutant("secure noise: one of the two squares", "reticent/watching/secure_noise.py", "return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)])", "return torch.cat([radius * torch.cos(angle), radius * torch.cos(angle)])", FALSE_NOISE),
    Mutant("secure noise: half of the circle", "reticent/watching/secure_noise.py", "angle = angle * (2.0 * math.pi * _SCALE)", "angle = angle * (math.pi * _SCALE)", FALSE_NOISE),
    Mutant("secure noise: one key for all", "reticent/watching/secure_noise.py", "Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16)))", "Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16)))", FALSE_NOISE),
    Mutant("verify: the content hash is compared", "reticent/certificates/verify.py", "if content_hash(certificate) != certificate.content_sha256:", "if False:", VERIFY + "::test_a_content_hash_that_is_not_that_of_the_document_is_refused"),
    Mutant("signatures: what is declared is signed", "reticent/certificates/signature.py", 'exclude={"signatures"}))', 'exclude={"signatures", "declared"}))', SIGNATURE + "::test_a_changed_declaration_breaks_the_signature"),
    Mutant("ledger: stopped-early is demanded", "reticent/records/run_rules.py", "(ledger.steps < ledger.planned_steps, RunWarning.STOPPED_EARLY),", "(False, RunWarning.STOPPED_EARLY),", LEDGER_FACTS),
    Mutant("ledger: records of a person are those of the configuration", "reticent/records/run_rules.py", 'if ledger.records_per_user is not None and ledger.config.get("records_per_user") is None:', "if False:", LEDGER_FACTS),
    Mutant("keys: one that others can read", "reticent/signing/keys.py", "st_mode & 0o077:", "st_mode & 0o007:", SIGNATURE + "::test_a_key_open_to_others_is_refused"),
    Mutant("ledger: the rate is the batch over the records", "reticent/records/run_rules.py", "if size is None or not _near(ledger.sample_rate, size / records):", "if size is None:", LEDGER_FACTS),
    Mutant("ledger: the planned steps are those of the epochs", "reticent/records/run_rules.py", "if ledger.planned_steps != planned:", "if ledger.planned_steps > planned:", LEDGER_FACTS),
    Mutant("ledger: a setting that no configuration has", "reticent/records/run_rules.py", "sorted(set(ledger.config) - SETTINGS - HANDLED)", "()", LEDGER_FACTS),
    Mutant("ledger: noise and target are stated", "reticent/records/run_rules.py", "if sum(asked.get(name) is not None for name in pair) != 1:", "if sum(asked.get(name) is not None for name in pair) > 1:", LEDGER_FACTS),
    Mutant("ledger: batches that no fair draw shows", "reticent/records/run_rules.py", "_IMPOSSIBLE = 60.0", "_IMPOSSIBLE = 6e9", LEDGER_FACTS),
    Mutant("ledger: its digest", "reticent/records/rules.py", "elif ledger.digest != digest_of(ledger):", "elif False:", LEDGER_FACTS),
    Mutant("ledger: noise under a target", "reticent/certificates/targets.py", "_SLACK = 0.01", "_SLACK = 10.0", LEDGER_FACTS),
    Mutant("ledger: nothing private in a public one", "reticent/certificates/ledger_rules.py", 'if name != "digest" and getattr', 'if name == "schema_" and getattr', LEDGER_FACTS + "::test_a_public_ledger_with_something_private_is_refused"),
    Mutant("ledger: the model is the declared one", "reticent/certificates/ledger_rules.py", "declared not in (None, seen)", "declared is None and seen is None", LEDGER_FACTS + "::test_the_declared_model_and_time_are_those_of_the_run"),
    Mutant("watch: passes hold the batches", "reticent/records/watch_rules.py", "drawn > segment.passes * batches", "drawn > segment.passes * batches * 1000", LEDGER_FACTS),
    Mutant("watch: a pass has as many batches as its records fill", "reticent/records/watch_rules.py", "if batches > most:", "if False:", LEDGER_FACTS),
    Mutant("watch: no segment has a higher rate", "reticent/records/watch_rules.py", "(usual is None or segment.sample_rate >= usual)", "False", LEDGER_FACTS),
    Mutant("watch: segments add up to the tally", "reticent/records/watch_rules.py", "not math.isclose(counted, adds_up, rel_tol=1e-9)", "not math.isclose(counted, adds_up, rel_tol=100.0)", LEDGER_FACTS),
    Mutant("watch: poisson that nobody saw", "reticent/records/watch_rules.py", "if nobody_looked and sampler.drawn not in", "if False and sampler.drawn not in", LEDGER_FACTS),
    Mutant("watch: faults that the facts do not show", "reticent/records/watch_rules.py", "if not follows and fault in run.faults:", "if False:", LEDGER_FACTS),
    Mutant("watch: who saw the optimizer saw its generator", "reticent/records/watch_rules.py", "if (run.randomness is Randomness.NOT_SEEN) == (len(run.optimiser) > 1):", "if False:", LEDGER_FACTS),
    Mutant("public edition: names without consent", "reticent/records/publication.py", "named = NAMES in consents or _is_public(ledger)", "named = True", NEIGHBOURS),
    Mutant("public edition: accuracy without consent", "reticent/records/publication.py", "shown=ACCURACY in consents or _is_public(ledger))", "shown=True)", NEIGHBOURS),
    Mutant("public edition: accuracy with all its digits", "reticent/records/publication.py", "round(accuracy, 2)", "accuracy", NEIGHBOURS + "::test_consent_shows_names_and_two_digits_of_accuracy"),
    Mutant("public edition: the digest instead of the commitment", "reticent/records/publication.py", 'data.committed("training-data")', "data.content_hash", NEIGHBOURS + "::test_1001_candidates_and_no_hit"),
    Mutant("public edition: a size that was kept secret", "reticent/records/publication.py", "dataset_size=None if hidden else data.dataset_size", "dataset_size=data.dataset_size", NEIGHBOURS),
    Mutant("public edition: a public data set by the name of a private one", "reticent/records/publication.py", "name != OWN and name == ledger.data.name", "name != OWN", NEIGHBOURS + "::test_records_that_only_borrow_a_public_name_are_private"),
    Mutant("opening: another table", "reticent/certificates/opening.py", "if sha256_file(data) == opening.table_file:", "if True:", NEIGHBOURS + "::test_an_opening_opens_what_it_belongs_to_and_nothing_else"),
    Mutant("envelope: the type is signed", "reticent/signing/envelope.py", 'return b"DSSEv1 %d %b %d %b" % (len(coded), coded, len(payload), payload)', 'return b"DSSEv1 %d %b" % (len(payload), payload)', SIGNATURE),
    Mutant("envelope: another spelling of the same bytes", "reticent/signing/envelope.py", "if base64.b64encode(found).decode() != text:", "if False:", SIGNATURE + "::test_base_64_has_one_spelling"),
    Mutant("signatures: an envelope of another document", "reticent/certificates/signature.py", "elif detached.payload != payload(certificate):", "elif False:", SIGNATURE + "::test_an_envelope_of_another_document_says_nothing"),
    Mutant("signatures: one key counts once", "reticent/certificates/check.py", "for path in keys if any(public[text][0] == path for text in found)]", "for path in keys if found]", SIGNATURE + "::test_several_keys_must_sign_or_as_many_as_are_enough"),
    Mutant("signatures: false ones that are embedded", "reticent/certificates/verify.py", "for problem in false_signatures(certificate):", "for problem in ():", SIGNATURE + "::test_no_page_names_a_key_that_did_not_sign"),
    Mutant("keys: small orders", "reticent/signing/curve25519.py", "if _is_zero(_times(8, point)):", "if False:", SIGNATURE),
    Mutant("keys: second spellings", "reticent/signing/curve25519.py", "if y >= _P:", "if False:", SIGNATURE + "::test_no_point_has_a_second_spelling"),
    Mutant("runs: a file that was added", "reticent/training/rundir.py", "sorted(there - set(manifest.files) - {MANIFEST, SIGNATURE})", "()", PROVENANCE),
    Mutant("runs: another manifest than was signed", "reticent/signing/provenance.py", "if found.payload != read_bytes(record, _LARGEST):", "if False:", PROVENANCE),
    Mutant("runs: the key of another", "reticent/signing/provenance.py", "    if not signed:\n        raise", "    if False:\n        raise", PROVENANCE),
    Mutant("declared text: letters of one script", "reticent/certificates/declared_text.py", "if len(scripts) > 1 and", "if False and", TEXT),
    Mutant("declared text: combining marks", "reticent/certificates/declared_text.py", '_MARKS = {"Mn", "Mc", "Me"}', "_MARKS: set[str] = set()", TEXT),
    Mutant("page: a key that did not sign", "reticent/certificates/page.py", "signers=[] if false_signatures(certificate) else", "signers=[] if False else", SIGNATURE + "::test_no_page_names_a_key_that_did_not_sign"),
    Mutant("form: a bias is overlooked", "reticent/training/model_form.py", 'bias="bias" in named and named["bias"].requires_grad', "bias=False", FORM + "::TestKinds::test_a_bias_of_unknown_weight_has_no_kind"),
    Mutant("form: a bias with normalised gradients is fixed", "reticent/training/model_form.py", "if normalised and not form.bias else", "if normalised else", FORM + "::TestKinds::test_a_bias_is_never_fixed"),
    Mutant("form: a network is taken for a head", "reticent/training/model_form.py", "layer = owners[0] if len(owners) == 1 else None", "layer = owners[-1] if owners else None", FORM + "::TestLayers::test_what_is_in_the_way"),
    Mutant("form: dropout is not seen", "reticent/training/model_form.py", "return layer.p > 0.0", "return False", FORM + "::TestLayers::test_what_is_in_the_way"),
    Mutant("form: statistics of a batch are not seen", "reticent/training/model_form.py", "return layer.training or not layer.track_running_stats", "return False", FORM + "::TestLayers::test_what_is_in_the_way"),
    Mutant("form: a layer that is used twice in a row", "reticent/training/model_form.py", "known=known and _places(model, layer) == 1", "known=known", FORM + "::TestLayers::test_what_is_written_by_somebody_else_is_not_known"),
    Mutant("form: any loss keeps its sign", "reticent/training/model_form.py", "if hard_labels and form.known and form.last and", "if form.known and", FORM + "::TestKinds::test_a_loss_that_may_turn_the_gradient_round_is_a_head"),
    Mutant("form: several labels are one direction", "reticent/training/model_form.py", "form.layer.out_features == 2", "form.layer.out_features >= 2", FORM + "::TestKinds::test_several_labels_are_a_head_even_if_normalised"),
    Mutant("form: records that were handed over are vouched for", "reticent/training/run.py", "encoded_here = ours and (dataset is None or", "encoded_here = True or (dataset is None or", FORM + "::TestRuns::test_records_that_were_handed_over_are_not_vouched_for"),
    Mutant("form: views are not seen", "reticent/training/model_form.py", "and config.augmentation is not None", "and config.augmentation is None", FORM + "::TestRuns::test_views_have_no_kind"),
    Mutant("features: a record that is shorter than it says", "reticent/training/features.py", "and shortest >= length * (1.0 - 1e-6)", "", FORM + "::TestOneLength::test_records_that_do_not_have_it_are_refused"),
    Mutant("normalise: a constant beside the length", "reticent/training/factored.py", "torch.linalg.vector_norm(scaled, dim=1, keepdim=True), 1.0)", "torch.linalg.vector_norm(rows, dim=1, keepdim=True) + 1e-6, 1.0)", NORMALISE + "::TestTwoLabels"),
    Mutant("normalise: gradients that underflow", "reticent/training/factored.py", "unit_rows(wrong - one)", "unit_rows(softmax(logits, dim=1).double() - one)", NORMALISE + "::TestTwoLabels"),
    Mutant("normalise: longer than the clip norm", "reticent/training/factored.py", "_INSIDE = 1.0 - 2.0**-20", "_INSIDE = 1.0 + 2.0**-20", NORMALISE + "::TestTwoLabels"),
    Mutant("vouched: a head is one direction", "reticent/records/vouched.py", 'Gradients.LINEAR_HEAD: ("linear-head", "known-share"),', 'Gradients.LINEAR_HEAD: ("one-direction", "linear-head", "known-share"),', VOUCHED + "::TestFormOfTheModel::test_a_head_is_no_single_direction"),
    Mutant("vouched: one direction has a fixed length", "reticent/records/vouched.py", 'Gradients.ONE_DIRECTION: ("same-features",)', 'Gradients.ONE_DIRECTION: ("same-features", "fixed-length")', VOUCHED + "::TestFormOfTheModel::test_normalised_gradients_have_a_fixed_length"),
    Mutant("vouched: noise from a seed", "reticent/records/vouched.py", "if ledger.randomness is Randomness.FRESH:", "if True:", VOUCHED + "::TestWhatRan"),
    Mutant("vouched: batches that the loader did not draw", "reticent/records/vouched.py", "Fault.OTHER_BATCHES in run.faults or", "", VOUCHED + "::TestWhatRan"),
    Mutant("vouched: the word of a program", "reticent/records/vouched.py", 'found["same-features"] = Status.DECLARED', 'found["same-features"] = Status.CHECKED', VOUCHED + "::TestWhatRan"),
    Mutant("ledger: a form that does not fit the parameters", "reticent/mechanisms/gradients.py", "return any(trained in (None, outputs * (inputs + biased)) for outputs, inputs in heads)", "return bool(heads)", VOUCHED + "::TestFormOfTheModel::test_the_form_must_fit_the_parameters"),
    Mutant("watch: features that the loop changes", "reticent/watching/model_form.py", "return bool(torch.isin(self._numbers(batch.detach().flatten(1)), self._known).all())", "return True", WATCH_FORM + "::TestNotBelieved::test_features_that_the_loop_changes"),
    Mutant("watch: a layer that is used twice", "reticent/watching/model_form.py", "self._calls > batches", "self._calls > 2 * batches", WATCH_FORM + "::TestNotBelieved::test_a_layer_that_is_used_twice"),
    Mutant("watch: dropout that is switched on later", "reticent/watching/model_form.py", "        if isinstance(now, Obstacle):\n            self._form = now\n        elif", "        if", WATCH_FORM + "::TestNotBelieved::test_dropout_that_is_switched_on_later"),
    Mutant("watch: any clipping is taken for flat", "reticent/watching/model_form.py", "Obstacle.CLIPPING if _other_clipping(optimizer) else head_of(self._bare)", "head_of(self._bare)", WATCH_FORM + "::TestNotBelieved::test_gradients_that_are_taken_another_way"),
    Mutant("patches: other images of the batch", "reticent/training/patches.py", "rows = rows - rows.mean(dim=1, keepdim=True)", "rows = rows - rows.mean(dim=0, keepdim=True)", "tests/training/test_features.py::test_patches_of_one_image_change_its_own_row_only"),
    Mutant("watch: a stop charged at the steps that ran", "reticent/records/watched_run.py", "for segment in charged(run)]", "for segment in run.segments]", LIVE + "::test_a_stop_is_charged_at_the_planned_steps"),
    Mutant("watch: planned steps with the most noise that ran", "reticent/records/planned.py", "min(part.noise_multiplier for part in run.segments)", "max(part.noise_multiplier for part in run.segments)", LIVE + "::test_what_did_not_run_counts_as_the_worst_of_what_ran"),
    Mutant("watch: planned steps at the usual rate", "reticent/records/planned.py", "return max(known) if known else None", "return usual", LIVE + "::test_what_did_not_run_counts_as_the_worst_of_what_ran"),
    Mutant("watch: planned passes that would be started", "reticent/records/planned.py", "-(-rest * many // batches)", "rest * many // batches", LIVE + "::test_passes_that_were_planned_count_whole"),
    Mutant("watch: a plan that was only declared is checked", "reticent/records/vouched.py", "if plan.stop_at is not None and equal else Status.DECLARED", "if equal else Status.DECLARED", LIVE + "::test_as_many_as_planned_cost_what_they_cost"),
    Mutant("watch: noise that changed on the way to a stop", "reticent/records/vouched.py", "if plan.stop_at is not None and equal else Status.DECLARED", "if plan.stop_at is not None else Status.DECLARED", LIVE + "::test_less_noise_on_the_way_moves_the_stop"),
    Mutant("watch: more steps than planned", "reticent/records/vouched.py", "if plan is None or run.steps > plan.steps:", "if plan is None:", LIVE + "::test_more_than_planned_all_count_and_nobody_vouches"),
    Mutant("watch: one step beyond the stop", "reticent/watching/live.py", "self._stop is not None and self._steps >= self._stop", "self._stop is not None and self._steps > self._stop", LIVE + "::test_a_loop_that_asks_ends_by_itself"),
    Mutant("watch: a stop that noise cannot move", "reticent/watching/live.py", "if self._target is not None and kind != self._kind:", "if self._target is not None and self._kind is None:", LIVE + "::test_less_noise_on_the_way_moves_the_stop"),
    Mutant("live risk: the most noise of several parts", "reticent/watching/live.py", "noise_multiplier=min(run.noise_multiplier for run in runs) / records", "noise_multiplier=max(run.noise_multiplier for run in runs) / records", LIVE + "::test_a_look_at_persons_and_at_many_parts_is_no_less_than_the_proof"),
    Mutant("live risk: one record of a person", "reticent/watching/live.py", "noise_multiplier=min(run.noise_multiplier for run in runs) / records", "noise_multiplier=min(run.noise_multiplier for run in runs)", LIVE + "::test_a_look_at_persons_and_at_many_parts_is_no_less_than_the_proof"),
    Mutant("live risk: batches of fixed size with a shift of 1", "reticent/watching/live.py", "noise_multiplier=0.5 * run.noise_multiplier", "noise_multiplier=run.noise_multiplier", LIVE + "::test_a_look_at_other_samplers"),
    Mutant("clients: counted as records", "reticent/records/watched_run.py", "            unit=self.unit,\n", "", CLIENTS + "::test_a_server_loop_is_certified_for_clients"),
    Mutant("clients: cohorts of fixed size taken as Poisson", "reticent/records/watched_run.py", "return self._part(noise, rate, steps, Sampler.FIXED_SIZE)", "return self._part(noise, rate, steps)", CLIENTS + "::test_a_server_loop_is_certified_for_clients"),
    Mutant("clients: Opacus's records called clients", "reticent/watching/units.py", "if unit is Unit.CLIENT and private:", "if unit is Unit.CLIENT and not said:", CLIENTS + "::test_opacus_clips_records"),
    Mutant("clients: a part of records among them", "reticent/mechanisms/ledger.py", "if len(units) > 1:", "if not units:", CLIENTS + "::test_a_ledger_is_about_one_kind"),
    Mutant("own tables: an indicator less its mean", "reticent/data/own_columns.py", "blank[:, None].astype(np.float32)", "(blank - blank.mean())[:, None].astype(np.float32)", COLUMNS + "::test_a_record_that_is_missing_something_changes_its_own_row_only"),
    Mutant("own tables: an indicator only where a cell is empty", "reticent/data/own_columns.py", "    if column.missing is Missing.INDICATOR:\n        block", "    if column.missing is Missing.INDICATOR and blank.any():\n        block", COLUMNS + "::test_a_record_that_is_missing_something_changes_its_own_row_only"),
    Mutant("own tables: the mean in empty cells", "reticent/data/own_columns.py", "stands = 0.5 * (low + high) if column.fill is None else float(column.fill)", "stands = float(np.nanmean(cells.numbers))", COLUMNS + "::test_a_constant_stands_for_an_empty_cell"),
    Mutant("own tables: bounds read off are called declared", "reticent/data/own_columns.py", "found = derived_column(cells, label=label).model_dump() | dict(given)", 'found = derived_column(cells, label=label).model_dump() | dict(given) | {"derived": False}', COLUMNS + "::test_bounds_may_be_read_off_where_only_missing_is_declared"),
    Mutant("own tables: a measured column may be missing", "reticent/training/own.py", "if sensitive in names and (", "if not names and (", "tests/training/test_own_data.py::test_numbers_that_may_be_missing_are_trained_on_and_not_measured"),
    Mutant("gate: only the first relation", "reticent/certificates/requirements.py", "    for relation in dict.fromkeys(relations):", "    for relation in relations[:1]:", CLOSED + "::TestRelations::test_a_limit_without_relation_holds_for_every_relation"),
    Mutant("gate: relations that the policy demands", "reticent/certificates/requirements.py", "        relations = [relation.value for relation in policy.demanded]", "        relations = []", CLOSED + "::TestRelations::test_a_relation_that_must_be_there_and_is_not"),
    Mutant("gate: the worst case of a relation", "reticent/certificates/requirements.py", 'if record.adversary == "worst-case"}', "}", CLOSED + "::TestRelations::test_the_worst_case_of_each_must_be_there"),
    Mutant("gate: other parameters count", "reticent/certificates/requirements.py", "fits = [record for record in every if _is_meant(record, limit)]", "fits = every", CLOSED + "::TestParameters::test_other_parameters_do_not_count"),
    Mutant("gate: a number passes for a measurement", "reticent/certificates/requirements.py", "isinstance(record.parameters[name], dict) if value == MEASURED", "True if value == MEASURED", CLOSED + "::TestParameters::test_a_number_is_no_measurement"),
    Mutant("gate: conditions are not asked about", "reticent/certificates/requirements.py", "for key, status in _open(record) if key not in policy.accept_conditions]", "for key, status in ()]", CLOSED + "::TestConditions"),
    Mutant("gate: a condition that nobody knows", "reticent/certificates/requirements.py", "if found.key not in CONDITIONS or found.known.open:", "if found.key in CONDITIONS and found.known.open:", CLOSED + "::TestConditions::test_a_condition_that_nobody_knows_is_not_accepted"),
    Mutant("gate: an estimate passes for a bound", "reticent/certificates/requirements.py", "(Claim(limit.claim).proven and Claim(record.claim).proven)", "Claim(limit.claim).proven", CLOSED + "::TestConditions::test_no_condition_makes_a_bound_of_an_estimate"),
    Mutant("gate: values outside a measure's domain", "reticent/certificates/policy.py", "if not 0.0 <= value <= kind.most:", "if not 0.0 <= value:", CLOSED + "::test_a_mistake_in_a_policy_is_one_line_and_exit_code_2"),
    Mutant("gate: a model that was not compared", "reticent/certificates/gate.py", "shown.weights is True, says[shown.weights]", "shown.weights is not False, says[shown.weights]", CLOSED + "::TestModel::test_the_weights_must_have_been_compared"),
    Mutant("gate: a model that is not on the list", "reticent/certificates/gate.py", "named in policy.weights_sha256, detail", "named is not None, detail", CLOSED + "::TestModel::test_the_model_must_be_on_the_list"),
    Mutant("gate: names that do not exist", "reticent/certificates/policy.py", "        if name not in names:", "        if not name:", CLOSED + "::test_a_mistake_in_a_policy_is_one_line_and_exit_code_2"),
    Mutant("certificates: any reason to leave an attacker out", "reticent/certificates/inputs.py", "return reason in (NOT_ASKED, kind.unmeasured) or reason in _refusals(kind, certificate, mechanism)", "return True", PLANTED + "::test_an_attacker_is_left_out_for_a_reason_that_can_be_true"),
    Mutant("certificates: dominance is not checked", "reticent/certificates/derive.py", "        check_dominance(result, worst[result.neighbouring])", "        pass", PLANTED + "::test_nobody_exceeds_the_worst_case"),
    Mutant("certificates: more digits than are stated", "reticent/certificates/rounding.py", "return low <= stated <= high and len(Decimal(repr(stated)).normalize().as_tuple().digits) <= digits", "return low <= stated <= high", PLANTED + "::test_more_digits_than_a_certificate_states_are_no_rounding"),
    Mutant("certificates: work is not estimated", "reticent/mechanisms/codec.py", "    if mechanism.work > _MOST_WORK:", "    if mechanism.work < 0.0:", HOSTILE + "::test_many_parts_together_are_too_much"),
    Mutant("command line: an option counts twice", "reticent/cli/_app.py", "if options[name].name in given and not options[name].multiple:", "if False:", "tests/cli/test_verify.py"),
    Mutant("front door: names in any order", "reticent/lazy.py", "names = sorted([*where, *more])", "names = [*more, *where]", "tests/api/test_front_door.py"),
    Mutant("one table: a column that does not fit is cut", "reticent/text.py", "        block.append(column)", "        block = [*block[:3], column]", "tests/cli/test_start.py::test_no_line_is_wider_than_the_terminal_and_no_digit_is_lost"),
    Mutant("files are written in place", "reticent/io/files.py", "        os.replace(partial, path)", "        path.write_bytes(data)", "tests/test_strict.py::TestWriting"),
    Mutant("private files can be read by others", "reticent/io/files.py", "0o600 if private else 0o666", "0o666", "tests/test_strict.py::TestWriting"),
    Mutant("a link in the way is followed", "reticent/io/files.py", "os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC", "os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC", "tests/test_strict.py::TestWriting"),
    Mutant("YAML: a key twice", "reticent/io/yaml.py", "            if name in found:", "            if name is found:", YAML),
    Mutant("YAML: aliases", "reticent/io/yaml.py", "if isinstance(event, events.AliasEvent) or getattr(event, \"anchor\", None) is not None:", "if False:", YAML),
    Mutant("YAML: numbers of several meanings", "reticent/io/yaml.py", "if _TWO_MEANINGS.fullmatch(text) and not _REAL.fullmatch(text):", "if False:", YAML),
    Mutant("YAML: nodes without end", "reticent/io/yaml.py", "        if self._left < 0:", "        if self._left is None:", YAML),
    Mutant("outputs: foreign files are replaced", "reticent/io/outputs.py", "    if not found or before.strip()[:1] not in", "    if False and before.strip()[:1] not in", CLOSED + "::TestOutputs"),
    Mutant("outputs: links are followed", "reticent/io/outputs.py", "    if path.is_symlink():\n        raise ArtifactError(f\"{path}: is a link", "    if False:\n        raise ArtifactError(f\"{path}: is a link", "tests/io/test_outputs.py"),
    Mutant("dashboard: this machine needs no token", "reticent/dashboard/guard.py", "    if not _same(request.cookies.get(cookie, \"\"), token):", "    if request.remote_addr is None and not _same(request.cookies.get(cookie, \"\"), token):", SERVER + "::TestToken"),
    Mutant("dashboard: any token", "reticent/dashboard/guard.py", "    return hmac.compare_digest(given.encode(\"utf-8\", \"replace\"), token.encode())", "    return bool(given)", SERVER + "::TestToken"),
    Mutant("dashboard: other sites may ask", "reticent/dashboard/guard.py", "if origin is not None and urlsplit(origin).netloc != request.host:", "if False:", SERVER + "::test_a_page_of_another_site_may_ask_nothing"),
    Mutant("dashboard: a foreign name that points here", "reticent/dashboard/guard.py", "        if not _is_ours(request.host, host, port):", "        if False:", SERVER + "::test_a_foreign_name_that_points_here_is_refused"),
    Mutant("checkpoint: two processes", "reticent/training/checkpoint.py", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH | fcntl.LOCK_NB", "tests/training/test_checkpoint.py::test_one_process_at_a_time"),
    Mutant("tables: cells are not counted first", "reticent/data/own_files.py", "    if columns > MOST_COLUMNS or rows * columns > _MOST_CELLS:", "    if False:", "tests/data/test_tables.py"),
    Mutant("npz: unpacked without a limit", "reticent/io/npz.py", "            if size > most:", "            if size < 0:", "tests/data/test_tables.py"),
    Mutant("events: noise over the records of a person", "reticent/interop/dp_events.py", "dp_event.GaussianDpEvent(noise / run.records)", "dp_event.GaussianDpEvent(noise)", FACTS + "::test_an_exported_event_speaks_about_all_records_of_a_person"),
    Mutant("epochs: rounded down", "reticent/mechanisms/epochs.py", "math.ceil(wanted * (1.0 - _ROUNDING))", "math.floor(wanted)", EPOCHS),
    Mutant("epochs: a whole number and its rounding", "reticent/mechanisms/epochs.py", "math.ceil(wanted * (1.0 - _ROUNDING))", "math.ceil(wanted - 0.01)", EPOCHS),
    Mutant("epochs: stated batches of a pass", "reticent/mechanisms/dpsgd.py", "rate if batches is None else 1.0 / batches", "rate", EPOCHS + "::test_stated_batches_of_a_pass_are_what_a_pass_takes"),
    Mutant("opacus: rates of added batches are added", "reticent/interop/opacus.py", "noise_multiplier=optimizer.noise_multiplier / batches, sample_rate=1.0", "noise_multiplier=optimizer.noise_multiplier, sample_rate=min(1.0, sample_rate * batches)", EPOCHS + "::test_batches_that_opacus_adds_up_may_hold_a_record_more_than_once"),
    Mutant("membership game: (1 - sample_rate)", "reticent/adversaries/game/adversary.py", "batch * (1.0 - mechanism.sample_rate) / k", "batch / k", FACTS + "::test_other_records_of_poisson_batches_add_less_than_their_second_moment"),
    Mutant("membership game: a spectrum of Poisson batches", "reticent/adversaries/game/adversary.py", "not _full_batch(mechanism) and isinstance(k, GradientSpectrum)", "False", FACTS + "::test_a_spectrum_says_nothing_about_batches_of_random_size"),
    Mutant("attribute: a budget over drawn batches", "reticent/adversaries/attribute/cases.py", "self.record.budget is not None and self.record.scope is not Scope.SAMPLED_BATCH", "self.record.budget is not None", FACTS + "::test_only_a_budget_over_chosen_records_is_proven"),
    Mutant("attribute: total squares of shuffled epochs", "reticent/adversaries/attribute/cases.py", "if record.budget is None and not self.mechanism.sampler.in_passes:", "if record.budget is None:", FACTS + "::test_a_record_of_shuffled_epochs_proves_nothing_beyond_the_worst_case"),
    Mutant("theorem keys of fixed batches", "reticent/mechanisms/dpsgd.py", '"DONG2022:Theorem 4.2" if sizes_agree else "RETICENT:fixed-size-dominance"', '"RETICENT:fixed-size-dominance" if sizes_agree else "DONG2022:Theorem 4.2"', FACTS + "::test_each_sampler_cites_its_own_theorem"),
    Mutant("theorem key of shuffled epochs", "reticent/mechanisms/dpsgd.py", 'return ("RETICENT:shuffled-epochs",) if', "return () if", FACTS + "::test_each_sampler_cites_its_own_theorem"),
    Mutant("attribute: chords above the worst case", "reticent/adversaries/attribute/bounds.py", "    if not any(np.any(bound(_SIZES) < known - _HELPS) for bound in log_deltas):\n        return worst\n    return strictest([tangent_envelope([worst.log_delta, *log_deltas]), worst])", "    return tangent_envelope([worst.log_delta, *log_deltas])", FACTS + "::test_the_largest_change_of_a_field_is_the_replacement_of_a_record"),
    Mutant("whole users: merged where a rate rounds to 1", "reticent/accountants/steps.py", "        elif pair.mu is not None:\n            squared += part.count * pair.mu**2", "        elif pair.unsampled_mu is not None and pair.log_absent < -36.0:\n            squared += part.count * pair.unsampled_mu**2", ROUNDED),
    Mutant("whole users: no noise, one coin", "reticent/mechanisms/dpsgd.py", "Part(pairs.Disclosure(rate), run.steps * records, keys)", "Part(pairs.Disclosure(rate), run.steps, keys)", ROUNDED),
    Mutant("power next to 1", "reticent/curves/base.py", "np.where(log_beta < LOG_HALF, log1mexp(log_beta), log_power)", "log_power", ROUNDED + "::test_the_raw_ends_of_the_power_are_in_order_next_to_1"),
    Mutant("sign lattice: points hundreds of nats apart", "reticent/adversaries/relaxed/sign/lattice.py", "if not max(pitches) < _COARSEST:", "if max(pitches) < 0.0:", ROUNDED + "::test_noise_beyond_all_reason_gets_the_worst_case"),
    Mutant("claims: no allowance for chords", "reticent/calibration/claims.py", "min(ends[1] * (1.0 + allowed), 1.0)", "ends[1]", POINTS),
    Mutant("claims: mu by its lower end", "reticent/calibration/claims.py", "return Interval(lower, upper, upper)", "return Interval(lower, lower, upper)", POINTS),
    Mutant("attribute: mask of the first part alone", "reticent/adversaries/attribute/cases.py", "        if len(self.parts) == 1 and self.parts[0].noise > 0.0:\n            (part,) = self.parts", "        if self.parts[0].noise > 0.0:\n            part = self.parts[0]", FACTS + "::test_every_part_of_a_ledger_counts_for_a_field"),
    Mutant("attribute: what was measured under a budget", "reticent/adversaries/attribute/cases.py", "largest = largest if record.budget is not None else record.largest_mask_term", "largest = record.largest_mask_term", FACTS + "::test_a_budget_does_not_use_what_was_measured"),
    Mutant("attribute: several records of a person", "reticent/adversaries/attribute/adversary.py", 'one_record(part, "attribute inference")', "pass", FACTS + "::test_several_records_of_a_person_are_refused_by_name"),
    Mutant("membership game: several records of a person", "reticent/adversaries/game/adversary.py", 'one_record(mechanism, "the membership game")', "pass", FACTS + "::test_several_records_of_a_person_are_refused_by_name"),
    Mutant("relaxed: dimension of the largest release", "reticent/adversaries/relaxed/fixed_length.py", "return min((d for d in map(released_coordinates", "return max((d for d in map(released_coordinates", FACTS + "::test_a_direction_is_unknown_in_no_more_dimensions_than_the_smallest_release_has"),
    Mutant("relaxed: two runs that differ are one", "reticent/adversaries/relaxed/fixed_length.py", "len({replace(run, steps=1) for run in runs}) > 1", "len({replace(run, steps=1) for run in runs}) > 2", FACTS + "::test_runs_that_differ_are_each_counted"),
    Mutant("relaxed: schedules under replacement", "reticent/adversaries/relaxed/fixed_length.py", "if asked.neighbouring.sensitivity == 1.0 and all(map(_followed, parts))", "if all(map(_followed, parts))", FACTS + "::test_runs_that_differ_are_each_counted"),
    Mutant("relaxed: ends of a matrix exchanged", "reticent/adversaries/relaxed/fixed_length.py", "for a in (True, False)", "for a in (False, True)", FACTS + "::test_the_sensitivity_that_is_only_bounded_is_the_larger_one"),
    Mutant("matrix: what is attained as the bound", "reticent/mechanisms/matrix.py", "shift = neighbouring.sensitivity * (size.attained if attained else size.proven)", "shift = neighbouring.sensitivity * size.attained", FACTS + "::test_the_sensitivity_that_is_only_bounded_is_the_larger_one"),
    Mutant("whole users: replacement in full batches", "reticent/mechanisms/dpsgd.py", "GaussianPair(noise, 1.0, records * neighbouring.sensitivity)", "GaussianPair(noise, 1.0, float(records))", FACTS + "::test_full_batches_of_a_person_move_by_all_records_of_both_persons"),
    Mutant("opacus: saved repeats", "reticent/interop/opacus.py", 'repeats = _check.count(repeats=state_dict.get("repeats", 1))', "repeats = 1", BRIDGES),
    Mutant("opacus: the largest clip norm", "reticent/interop/opacus.py", "else min(self.max_grad_norm, norm)", "else max(self.max_grad_norm, norm)", BRIDGES),
    Mutant("pld: half a bound", "reticent/interop/pld.py", "    return all(\n        bool(getattr", "    return any(\n        bool(getattr", BRIDGES),
    Mutant("reacting: what a known direction tells, at less signal", "reticent/adversaries/relaxed/reacting/step_information.py", "mu, counts = math.sqrt(part.signal),", "mu, counts = math.sqrt(0.98 * part.signal),", REACTING_ORACLES + "::test_what_a_known_direction_tells"),
    Mutant("reacting: psi dropped", "reticent/adversaries/relaxed/reacting/step_information.py", "_steepest(drawn) * chi_square)", "0.5 * chi_square)", REACTING_ORACLES + "::test_each_bound_of_a_step_is_asked"),
    Mutant("reacting: the fourth moment dropped", "reticent/adversaries/relaxed/reacting/step_information.py", "0.5 * chi_square + fourth)", "0.5 * chi_square)", REACTING_ORACLES + "::test_each_bound_of_a_step_is_asked"),
    Mutant("reacting: a power of the rate more", "reticent/adversaries/relaxed/reacting/step_information.py", "return self.rate**2 * float(_above_tangent", "return self.rate**3 * float(_above_tangent", REACTING + "::test_the_table"),
    Mutant("reacting: first order without the square of the rate", "reticent/adversaries/relaxed/reacting/step_information.py", "x * mean * mean * first", "x * mean * mean * self.rate * first", REACTING + "::test_the_table"),
    Mutant("reacting: left ends for right ones in the majorant", "reticent/adversaries/relaxed/reacting/information.py", "np.append(np.maximum.accumulate(values)[1 : len(nats)], values[-1])[: len(nats)]", "np.maximum.accumulate(values)[: len(nats)]", REACTING_ORACLES + "::test_the_majorant_covers_what_lies_between_two_points"),
    Mutant("reacting: left ends for right ones in blocks of steps", "reticent/adversaries/relaxed/reacting/information.py", "_gains(part, setting)(high * known", "_gains(part, setting)(low * known", REACTING_ORACLES + "::test_blocks_of_steps_lie_above_the_sum_of_all"),
    Mutant("reacting: left ends for right ones in any order", "reticent/adversaries/relaxed/reacting/information.py", "_per_nat(part, setting, grid[1:])", "_per_nat(part, setting, grid[:-1])", REACTING_ORACLES + "::test_any_order_of_equal_parts_lies_above_the_integral"),
    Mutant("reacting: the order as it is given", "reticent/adversaries/relaxed/reacting/information.py", "return min(float(taught @ prices + most @ width), total)", "return min(float(taught @ prices), total)", REACTING + "::test_ledgers_bound_each_order_of_their_steps"),
    Mutant("reacting: phi squared instead of its majorant", "reticent/adversaries/relaxed/reacting/information.py", "while len(kept) > 1 and _bends(", "while len(kept) > len(nats) and _bends(", REACTING_ORACLES + "::test_gains_are_concave_and_grow"),
    Mutant("reacting: nothing is learnt", "reticent/adversaries/relaxed/reacting/information.py", "(high * known_direction(part))", "(0.0 * high)", REACTING + "::test_the_table"),
    Mutant("reacting: a known share forgotten", "reticent/adversaries/relaxed/reacting/information.py", "hidden + setting.known_share", "hidden", REACTING + "::test_a_known_share_bounds_who_looks_at_it_alone"),
    Mutant("reacting: removal without its threshold", "reticent/adversaries/relaxed/reacting/information.py", "log_of(remove) + thresholds", "log_of(remove)", REACTING_ORACLES + "::test_two_coins_bound_delta_both_ways"),
    Mutant("reacting: heads as one direction", "reticent/adversaries/relaxed/reacting/information.py", "(bounds.half_square, bounds.half_length) if setting.agrees else (bounds.square, bounds.length)", "(bounds.half_square, bounds.half_length)", REACTING + "::test_heads_with_several_outputs"),
    Mutant("reacting: half of all pairs for heads", "reticent/adversaries/relaxed/reacting/enclose.py", "if self.setting.agrees:  # half", "if True:  # half", REACTING + "::test_exact_likelihood_ratios_of_reactions"),
    Mutant("reacting: an epoch of a person as one step", "reticent/adversaries/relaxed/reacting/enclose.py", "split=records > 1 and not attained", "split=False", REACTING + "::test_a_person_whose_records_are_spread_over_an_epoch"),
    Mutant("reacting: fixed batches", "reticent/adversaries/relaxed/reacting/enclose.py", "        return _FIXED_BATCHES\n", "        pass\n", REACTING + "::test_what_is_not_covered_gets_the_worst_case"),
    Mutant("reacting: a moment generating function cut off", "reticent/adversaries/relaxed/reacting/learnt.py", "np.logaddexp(0.0, _log_excess(law, tilts, law.nodes) - LOG_2)", "np.minimum(np.logaddexp(0.0, _log_excess(law, tilts, law.nodes) - LOG_2), 2.0)", REACTING_ORACLES + "::test_what_is_learnt_bounds_every_tilted_law"),
    Mutant("reacting: overlaps as before anything is learnt", "reticent/adversaries/relaxed/reacting/learnt.py", "(1.0 + gained**2 / d) / d", "1.0 / d", REACTING_ORACLES + "::test_what_is_learnt_bounds_every_tilted_law"),
    Mutant("reacting: chords without the mean", "reticent/adversaries/relaxed/reacting/overlap_law.py", "+ _SHARE, 0.0, 1.0)", "- 0.2, 0.0, 1.0)", REACTING_ORACLES + "::test_exponential_moments_of_overlaps_lie_closely_above"),
    Mutant("reacting: the perceptron acts on all", "reticent/adversaries/relaxed/reacting/frozen.py", "inside if signed else 0.5 * inside", "inside", REACTING + "::test_the_frozen_attack_of_the_enclosure_is_the_exact_one_from_below"),
    Mutant("final model: the last use is hidden too", "reticent/adversaries/final_model.py", "math.sqrt(1.0 - shrunk *", "math.sqrt(0.0 - shrunk *", "tests/adversaries/test_final_model.py"),
    Mutant("final model: one shift for replacement", "reticent/adversaries/final_model.py", "once = neighbouring.sensitivity * run.records", "once = 1.0 * run.records", "tests/adversaries/test_final_model.py"),
    Mutant("final model: an epoch broken off is none", "reticent/adversaries/final_model.py", "epochs = -(-run.steps // batches)", "epochs = max(run.steps // batches, 1)", "tests/adversaries/test_final_model.py"),
    Mutant("final model: any sampler", "reticent/adversaries/final_model.py", "run.sampler is Sampler.CYCLIC and run.records == 1", "run.sampler.in_passes and run.records == 1", "tests/adversaries/test_final_model.py"),
    Mutant("allocation: shares of a spread exchanged", "reticent/pairs/allocated_sum.py", "mass += np.bincount(cell, weight * (1.0 - share), size) + np.bincount(cell + 1, weight * share, size)", "mass += np.bincount(cell, weight * share, size) + np.bincount(cell + 1, weight * (1.0 - share), size)", ALLOCATION + "::TestOneEpoch::test_mean_and_mass_are_kept"),
    Mutant("allocation: what lies beyond the grid is dropped", "reticent/pairs/allocated_sum.py", "lost += float(weight @ np.maximum(at - points[-1], 0.0))", "lost += 0.0", ALLOCATION + "::TestOneEpoch::test_what_lies_beyond_the_grid_is_counted"),
    Mutant("allocation: cells at their points", "reticent/pairs/allocated_sum.py", "return Law(grid, points + moved,", "return Law(grid, points + 0.0 * moved,", ALLOCATION + "::TestOneEpoch::test_mean_and_mass_are_kept"),
    Mutant("allocation: heads are added once", "reticent/pairs/allocated_sum.py", "yield _doubled(_convolved(a, body_a", "yield (_convolved(a, body_a", ALLOCATION + "::TestOneEpoch::test_mean_and_mass_are_kept"),
    Mutant("allocation: the stronger side from below", "reticent/accountants/lattice.py", "(self.below(weaker(steps)),)", "(self.below(steps),)", ALLOCATION + "::TestEpochs::test_steps_that_are_known_from_both_sides"),
    Mutant("allocation: the weaker side from above", "reticent/pairs/random_allocation.py", "return random_allocation(self.noise_multiplier, self.bins)[0]", "return random_allocation(self.noise_multiplier, self.bins)[1]", ALLOCATION + "::TestEpochs::test_steps_that_are_known_from_both_sides"),
    Mutant("allocation: a started epoch in a lower end", "reticent/mechanisms/sampler_pairs.py", "run.steps // batches if attained", "-(-run.steps // batches) if attained", ALLOCATION + "::TestEpochs::test_an_epoch_that_was_started_counts"),
    Mutant("allocation: epochs of one assignment as if drawn anew", "reticent/mechanisms/sampler_pairs.py", "noise / math.sqrt(epochs), 1", "noise, 1", ALLOCATION + "::TestEpochs::test_one_assignment_is_less_noise"),
    Mutant("allocation: more bins than k uses leave", "reticent/mechanisms/sampler_pairs.py", "_allocated(noise, batches // uses,", "_allocated(noise, batches,", ALLOCATION + "::TestEpochs::test_several_uses_in_an_epoch"),
    Mutant("allocation: more bins than there may be", "reticent/mechanisms/dpsgd.py", "math.floor((1.0 + _ONE) / sample_rate)", "math.ceil((1.0 - _ONE) / sample_rate)", ALLOCATION + "::TestEpochs::test_fewer_bins_are_the_safe_side"),
    Mutant("allocation chain: the second move is left out", "reticent/curves/moves.py", "fnr, tpr = second._at(rejected)", "fnr, tpr = accepted, rejected", CHAIN + "::TestChain"),
    Mutant("allocation chain: rates are raised by rounding", "reticent/curves/moves.py", "less, more = rate - _ROUNDING, np.minimum(rest + _ROUNDING, 0.0)", "less, more = rate + _ROUNDING, rest - _ROUNDING", CHAIN + "::TestChain"),
    Mutant("allocation chain: one record fewer", "reticent/pairs/random_allocation.py", "for _ in range(records - 1):", "for _ in range(records - 2):", CHAIN),
    Mutant("allocation chain: what is replaced is only taken away", "reticent/pairs/random_allocation.py", "chained(found.reversed, found) if replaced else found", "found", CHAIN + "::test_the_game_itself"),
    Mutant("opacus: passes that are touched", "reticent/interop/opacus.py", "touched = -(-(offset + part.steps) // fewest)", "touched = -(-part.steps // fewest)", "tests/interop/test_opacus.py::test_each_pass_that_steps_of_one_noise_touch_counts"),
    Mutant("largest batch: half of the runs", "reticent/calibration/samplers.py", "_RARE = 1e-6", "_RARE = 0.5", "tests/calibration/test_samplers.py::test_the_largest_batch_is_exceeded_in_one_run_of_a_million"),
    Mutant("truncated: nobody is displaced", "reticent/mechanisms/sampler_pairs.py", "pairs.GaussianPair(noise, full_rate, 2.0)", "pairs.GaussianPair(noise, full_rate, 1.0)", TRUNCATED + "::TestDominance::test_all_draws"),
    Mutant("truncated: the target never fills a batch", "reticent/mechanisms/sampler_pairs.py", "bdtrc(most - 1, records - 1, rate)", "bdtrc(most, records - 1, rate)", TRUNCATED + "::TestDominance::test_the_probabilities"),
    Mutant("tails: an untilted mass", "reticent/accountants/lattice.py", "found.mass[zero:]) * np.exp(-tilt * losses)", "found.mass[zero:]) * np.exp(-1.1 * tilt * losses)", ALLOCATION + "::TestEpochs::test_tails_of_many_steps_keep_their_digits"),
    Mutant("lists: a broken package is left out", "reticent/registry.py", "        except Exception as error:\n", "        except Exception as error:\n            return\n", REGISTRY + "::test_what_cannot_be_used_is_named_each_time"),
    Mutant("lists: a broken package is named once", "reticent/registry.py", "            self._searched = False\n", "", REGISTRY + "::test_what_cannot_be_used_is_named_each_time"),
    Mutant("lists: any class is an attacker", "reticent/registry.py", "not (isinstance(kind, type) and issubclass(kind, self._base))", "not isinstance(kind, type)", REGISTRY + "::test_what_cannot_be_used_is_named_each_time"),
    Mutant("lists: a name is taken over", "reticent/registry.py", "if self._listed.setdefault(name, kind) is not kind:", "if False:", REGISTRY + "::test_what_cannot_be_used_is_named_each_time"),
    Mutant("lists: a key of a theorem for another statement", "reticent/proofs/references.py", " or THEOREMS.setdefault(theorem.key, theorem) != theorem", " or not THEOREMS.setdefault(theorem.key, theorem)", REGISTRY + "::test_theorems_of_other_packages_are_said_once"),
    Mutant("routes: those of other packages are not asked", "reticent/accountants/enclose.py", "for kind in ROUTES.values() if found.width > accuracy.width else ():", "for kind in ():", "tests/accountants/test_routes.py::test_routes_of_other_packages_are_asked_where_ours_are_wide"),
    Mutant("audit: no statistics of one run", "reticent/auditing/report.py", "if kind.design in (None, scores.design)", "if kind.design is None", "tests/auditing/test_one_run.py"),
    Mutant("screen: attackers without a sign wait for the proof", "reticent/dashboard/exploring.py", "for who in everybody if (drawn", "for who in everybody[:1] if (drawn", SCREEN + "::test_it_is_an_estimate_until_the_proven_curve_replaces_it"),
    Mutant("tasks: tensors that are not finite", "reticent/tasks/files.py", "    _require_finite(arrays, f\"{path}: \")\n", "", "tests/tasks/test_hostile.py::test_bad_tensors"),
    Mutant("tasks: links are followed", "reticent/tasks/files.py", "JSON_LIMIT, follow=False", "JSON_LIMIT", "tests/tasks/test_hostile.py::test_pickles_links_devices_and_folders_are_refused_and_nothing_runs"),
    Mutant("allocation: one draw for all epochs", "reticent/training/batches.py", "    while True:\n        yield from allocation(source, dataset_size, steps)", "    drawn = allocation(source, dataset_size, steps)\n    while True:\n        yield from drawn", "tests/training/test_batches.py::test_random_allocation_uses_each_record_once_in_any_step_alike"),
    Mutant("allocation: equal batches, as shuffling has", "reticent/training/batches.py", "step = (source.uniform(dataset_size) * steps).astype(np.int64)", "step = np.argsort(source.uniform(dataset_size)) * steps // dataset_size", "tests/watching/test_random_allocation.py::test_the_law_of_the_draws"),
    Mutant("watch: a subclass of the allocation is trusted", "reticent/watching/samplers.py", "if type(batches) is RandomAllocation or", "if isinstance(batches, RandomAllocation) or", "tests/watching/test_random_allocation.py::test_a_class_that_draws_otherwise_is_unknown"),
    Mutant("watch: an allocation that is broken off counts its steps", "reticent/records/watched_run.py", "counted = steps if unbroken else segment.passes * batches", "counted = steps", "tests/watching/test_random_allocation.py::test_an_epoch_that_is_broken_off_counts_in_full"),
    Mutant("selection: no outcome ranks above a higher loss", "reticent/accountants/selection.py", "reached = np.maximum.accumulate(value, axis=1)", "reached = np.repeat(value[:, :1], value.shape[1], axis=1)", "tests/accountants/test_selection.py::test_no_order_of_outcomes_shows_more"),
    Mutant("selection: the shift of the other direction", "reticent/accountants/selection.py", "runs.most_log_ratio(np.exp(rates.tnr), np.exp(rates.fnr))", "runs.most_log_ratio(np.exp(rates.fpr), np.exp(rates.tpr))", "tests/accountants/test_selection.py::test_no_order_of_outcomes_shows_more"),
)  # fmt: skip
