"""Every name of this package, and where it is read from: who lists attackers reads none of it."""

from reticent.adversaries.attribute.cases import case_of as case_of
