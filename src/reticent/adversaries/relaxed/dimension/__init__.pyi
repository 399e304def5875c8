from reticent.adversaries.relaxed.dimension.chain import replaced as replaced
from reticent.adversaries.relaxed.dimension.chi_square import log_mean_of_count as log_mean_of_count
from reticent.adversaries.relaxed.dimension.directions import DirectionLaw as DirectionLaw
from reticent.adversaries.relaxed.dimension.enclose import relaxed_estimate as relaxed_estimate
from reticent.adversaries.relaxed.dimension.enclose import relaxed_in as relaxed_in
from reticent.adversaries.relaxed.dimension.enclose import relaxed_under as relaxed_under
