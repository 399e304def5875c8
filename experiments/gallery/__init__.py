"""The gallery: every figure and table of the four papers, with a verdict that follows from its numbers.

Results are data beside this file; scripts are in ``experiments/<paper>/``. No number of the library comes from here.
"""

from experiments.gallery.entry import GROUPS as GROUPS
from experiments.gallery.entry import OWN as OWN
from experiments.gallery.entry import PAPERS as PAPERS
from experiments.gallery.entry import Entry as Entry
from experiments.gallery.entry import Measured as Measured
from experiments.gallery.entry import Published as Published
from experiments.gallery.entry import Relation as Relation
from experiments.gallery.entry import Result as Result
from experiments.gallery.entry import Verdict as Verdict
from experiments.gallery.page import compared as compared
from experiments.gallery.page import pages as pages
from experiments.gallery.page import sentence as sentence
from experiments.gallery.run import RESULTS_ANEW as RESULTS_ANEW
from experiments.gallery.run import ROOT as ROOT
from experiments.gallery.run import compute_again as compute_again
from experiments.gallery.run import keep as keep
from experiments.gallery.run import load_entry as load_entry
from experiments.gallery.run import picture_of as picture_of
from experiments.gallery.run import run_entry as run_entry
from experiments.gallery.run import scripted_ids as scripted_ids
from experiments.gallery.store import document as document
from experiments.gallery.store import stored as stored
from experiments.gallery.store import stored_ids as stored_ids
