"""Every verb, and the tables that they answer with: see ``reticent.lazy``."""

from reticent.api.documents import Certified as Certified
from reticent.api.documents import Verified as Verified
from reticent.api.documents import certify as certify
from reticent.api.documents import verify as verify
from reticent.api.evidence import Audited as Audited
from reticent.api.evidence import audit as audit
from reticent.api.evidence import audit_loop as audit_loop
from reticent.api.grids import Grid as Grid
from reticent.api.grids import assess_each as assess_each
from reticent.api.noise import Calibrations as Calibrations
from reticent.api.noise import calibrate as calibrate
from reticent.api.noise import compare as compare
from reticent.api.releases import dpsgd as dpsgd
from reticent.api.risks import Assessments as Assessments
from reticent.api.risks import assess as assess
from reticent.api.samplers import SamplerChoices as SamplerChoices
from reticent.api.samplers import calibrate_samplers as calibrate_samplers
from reticent.api.table import Table as Table
from reticent.api.watching import Linted as Linted
from reticent.api.watching import lint as lint
from reticent.api.watching import random_allocation as random_allocation
from reticent.api.watching import secure_noise as secure_noise
from reticent.api.watching import watch as watch
