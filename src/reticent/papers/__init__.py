"""The gallery: every figure and table of the four papers, with a verdict that follows from its numbers.

Results are data in the package; scripts are in ``experiments/<paper>/`` of the repository. No number of the library
comes from here.
"""

from reticent.papers.entry import GROUPS, OWN, PAPERS, Entry, Measured, Published, Relation, Result, Verdict
from reticent.papers.page import compared, pages, sentence
from reticent.papers.run import checkout, keep, load_entry, picture_of, run_entry, scripted_ids
from reticent.papers.store import document, stored, stored_ids

__all__ = [
    "GROUPS",
    "OWN",
    "PAPERS",
    "Entry",
    "Measured",
    "Published",
    "Relation",
    "Result",
    "Verdict",
    "checkout",
    "compared",
    "document",
    "keep",
    "load_entry",
    "pages",
    "picture_of",
    "run_entry",
    "scripted_ids",
    "sentence",
    "stored",
    "stored_ids",
]
