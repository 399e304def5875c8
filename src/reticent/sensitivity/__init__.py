"""How far one field of one record can move its clipped gradient: exact, or refused.

``GradientSensitivity`` measures one batch, ``AttributeRecorder`` a whole run of any loop. Neither needs
``reticent.training`` or ``reticent.watching``; what follows from it is in ``reticent.adversaries.attribute``.

The meter measures by the fastest way that agrees with brute force on the model at hand: ``dense`` (no autograd),
``layered`` (factors of known layers, ``torch.func`` for the rest), or ``single`` (one backward pass per completion).
``trust`` compares them with ``brute`` before the first number is given.
"""

from reticent.kernel.errors import needing

with needing("reticent.sensitivity", "train"):
    from reticent.sensitivity.attribute import SensitiveAttribute as SensitiveAttribute
    from reticent.sensitivity.brute import Loss as Loss
    from reticent.sensitivity.diameter import Diameter as Diameter
    from reticent.sensitivity.diameter import diameters as diameters
    from reticent.sensitivity.meter import Distances as Distances
    from reticent.sensitivity.meter import GradientSensitivity as GradientSensitivity
    from reticent.sensitivity.meter import Precision as Precision
    from reticent.sensitivity.recorder import AttributeRecorder as AttributeRecorder
    from reticent.sensitivity.recorder import AuditSet as AuditSet
    from reticent.sensitivity.trust import Route as Route
