from reticent.adversaries.relaxed.reacting.enclose import reacting_in as reacting_in
