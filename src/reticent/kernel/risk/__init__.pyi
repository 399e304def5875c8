"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.kernel.risk.conversions import advantage_bound as advantage_bound
from reticent.kernel.risk.conversions import least_epsilon as least_epsilon
from reticent.kernel.risk.measures import MU_FLOOR as MU_FLOOR
from reticent.kernel.risk.measures import advantage as advantage
from reticent.kernel.risk.measures import bayes_security as bayes_security
from reticent.kernel.risk.measures import blind_guess as blind_guess
from reticent.kernel.risk.measures import delta_at_epsilon as delta_at_epsilon
from reticent.kernel.risk.measures import epsilon_at_delta as epsilon_at_delta
from reticent.kernel.risk.measures import mu as mu
from reticent.kernel.risk.measures import mu_above as mu_above
from reticent.kernel.risk.measures import power_of_ppv as power_of_ppv
from reticent.kernel.risk.measures import ppv as ppv
from reticent.kernel.risk.measures import ppv_of_power as ppv_of_power
from reticent.kernel.risk.measures import recovered as recovered
from reticent.kernel.risk.measures import secret_success as secret_success
from reticent.kernel.risk.measures import success as success
from reticent.kernel.risk.measures import tpr_at_fpr as tpr_at_fpr
