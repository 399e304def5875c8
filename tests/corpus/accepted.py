"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_FORMAT = "documents hold messages: keys with values"
_TYPE = "what is said is a Message, not a text"
_ROUNDED = "another processor rounds otherwise: the code of before answers the same here"
ACCEPTED: dict[str, str] = {
    "*/schema": _FORMAT,
    "*/infers": "the comma before what an average is over belongs to the sentence around it",
    "surface/schema; *": _FORMAT,
    "surface/names; *": _TYPE,
    "certificates/*/document/ledger/tally": "what can be added up is stored no more",
    "certificates/*/verify, json/out/declared/ledger.*": "facts of a ledger have other places",
    "certificates/*/verify, json/out/equal": "a ledger has other leaves",
    "certificates/edits; run; *": "facts of a ledger have other places, so other edits are made: none is accepted anew",
    "certificates/edits; loop; *": "facts of a ledger have other places, and so other edits are made: one is accepted",
    "certificates/edits; loop; 2/ledger/segments/0/passes": "no number follows from passes where coins draw; the tally "
    "alone refused them",
    "surface/names; api/Linted": "one class of ledgers",
    "surface/names; */assess": "one class of ledgers",
    "surface/names; training/FitRecord*": "segments, which are always there",
    "surface/names; training/TrainConfig": "the stages of a configuration are in reticent.facts",
    "loops/test_a_look_that_fails[[]*": "another function of the ledger fails",
    "loops/TestPhases::*contradicts_nothing": "new tests",
    "loops/TestReductions::*": "stored before the tests had other loaders: main answers the same",
    "loops/TestDivisors::test_opacus_that_divides_by_the_realised_batch*": "stored before: main answers the same",
    "loops/test_padding_that_counts*": "stored before the test had another loader: main answers the same",
    "doors/certify dpsgd --noise-multiplier *": "who leaves out the sampler is told that Poisson draws are declared",
    "surface/sentences; theorems/CHERUBIN2024:Corollary 7*": "the code that is left in the package",
    "surface/sentences; theorems/RETICENT:hellinger-bracket*": "the code that is left in the package",
    "certificates/plan; selection/pages/fr": "another blank stood before the semicolon of an enclosure without end",
    "certificates/plan; */certify/out": "who leaves out the sampler is told that Poisson draws are declared",
    "certificates/edits; plan; *": "what is said is a message: another leaf is edited, and it is refused",
    "certificates/plan; fixed size/document/assessments/*[[]]/*": _ROUNDED,
    "certificates/run; network/pages/en": _ROUNDED,
    "doors/calibrate dpsgd *--adversary membership --json/out/slack": _ROUNDED,
    "doors/refused: verify *": _FORMAT,
    "assessments/random allocation; */epsilon_at_delta/1e-12[[]]/*": _ROUNDED,
    "assessments/gaussian in 30 dimensions; norm only/assessments/norm-only, add-remove/knows": "the comma before what "
    "an average is over belongs to the sentence around it",
    "calibrations/random-allocation; advantage=0.1; default/*": _ROUNDED,
    "calibrations/random-allocation; epsilon=2@1e-5; default/*": _ROUNDED,
}
