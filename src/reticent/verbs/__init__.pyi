"""Every verb, and the tables that they answer with: see ``reticent.lazy``."""

from reticent.verbs.documents import Certified as Certified
from reticent.verbs.documents import Verified as Verified
from reticent.verbs.documents import certify as certify
from reticent.verbs.documents import verify as verify
from reticent.verbs.evidence import Audited as Audited
from reticent.verbs.evidence import audit as audit
from reticent.verbs.evidence import audit_loop as audit_loop
from reticent.verbs.grids import Grid as Grid
from reticent.verbs.grids import assess_each as assess_each
from reticent.verbs.noise import Calibrations as Calibrations
from reticent.verbs.noise import calibrate as calibrate
from reticent.verbs.noise import compare as compare
from reticent.verbs.releases import dpsgd as dpsgd
from reticent.verbs.risks import Assessments as Assessments
from reticent.verbs.risks import assess as assess
from reticent.verbs.samplers import SamplerChoices as SamplerChoices
from reticent.verbs.samplers import calibrate_samplers as calibrate_samplers
from reticent.verbs.side_by_side import Differences as Differences
from reticent.verbs.side_by_side import differences as differences
from reticent.verbs.table import Table as Table
from reticent.verbs.watching import Linted as Linted
from reticent.verbs.watching import lint as lint
from reticent.verbs.watching import random_allocation as random_allocation
from reticent.verbs.watching import secure_noise as secure_noise
from reticent.verbs.watching import watch as watch
