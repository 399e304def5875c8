"""reticent: how much can this attacker learn about one person from the model we release?

``import reticent as rt`` is the front door: what was released, who attacks, and the verbs. Nothing is loaded before
it is used, so the import costs milliseconds. ``reticent.kernel`` has what one number needs, in the order in which it
is read; the packages beside it hold everything else.
"""

from reticent.kernel.lazy import attached

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attached(__name__, "__version__")
