"""The verbs of the front door. ``import reticent as rt`` shows them; results are tables that print, plot and export.

The file of a verb is loaded when the verb is first asked for. It calls the rooms below and derives nothing.
"""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
