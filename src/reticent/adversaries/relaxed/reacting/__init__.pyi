from reticent.adversaries.relaxed.reacting.enclose import reacting_in as reacting_in
from reticent.adversaries.relaxed.reacting.spread import of_a_pool as of_a_pool
