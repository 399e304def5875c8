"""The gallery: every figure and table of the four papers, with a verdict that follows from its numbers.

Results are data in the package; scripts are in ``experiments/<paper>/`` of the repository. No number of the library
comes from here.
"""

from reticent.papers.entry import GROUPS as GROUPS
from reticent.papers.entry import OWN as OWN
from reticent.papers.entry import PAPERS as PAPERS
from reticent.papers.entry import Entry as Entry
from reticent.papers.entry import Measured as Measured
from reticent.papers.entry import Published as Published
from reticent.papers.entry import Relation as Relation
from reticent.papers.entry import Result as Result
from reticent.papers.entry import Verdict as Verdict
from reticent.papers.page import compared as compared
from reticent.papers.page import pages as pages
from reticent.papers.page import sentence as sentence
from reticent.papers.run import RESULTS_ANEW as RESULTS_ANEW
from reticent.papers.run import checkout as checkout
from reticent.papers.run import compute_again as compute_again
from reticent.papers.run import keep as keep
from reticent.papers.run import load_entry as load_entry
from reticent.papers.run import picture_of as picture_of
from reticent.papers.run import run_entry as run_entry
from reticent.papers.run import scripted_ids as scripted_ids
from reticent.papers.store import document as document
from reticent.papers.store import stored as stored
from reticent.papers.store import stored_ids as stored_ids
