from reticent.adversaries.relaxed.sign.join import Part as Part
from reticent.adversaries.relaxed.sign.join import quick_sign_estimate as quick_sign_estimate
from reticent.adversaries.relaxed.sign.join import unknown_sign as unknown_sign
