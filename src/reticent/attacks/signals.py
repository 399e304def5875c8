"""What a model shows about one labelled record, in one number: the scaled confidence.

With p the probability that the model gives to the record's label, the scaled confidence is
``log p - log(1 - p)``: any real number, roughly normal over training runs (Carlini et al. 2022), larger
for records that the model knows. The loss is ``log(1 + e^-confidence)``, so that one array serves every attack.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from reticent.kernel.errors import ParameterError


def scaled_confidence(logits: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Scaled confidence, without the cancellation of ``1 - p``.

    Args:
        logits: shape (..., records, classes), at least two classes.
        labels: the records' labels, shape (records,).

    Returns:
        ``logit of the label - logsumexp of the other logits``, shape (..., records).

    Raises:
        ParameterError: shapes do not fit, fewer than two classes, or a logit is not finite (the model has diverged).
    """
    values = np.asarray(logits, dtype=np.float64)
    chosen = np.asarray(labels)
    if values.ndim < 2 or values.shape[-1] < 2 or chosen.shape != values.shape[-2:-1]:
        raise ParameterError("logits", values.shape, "of shape (..., records, classes) with one label per record")
    if not np.isfinite(values).all():
        raise ParameterError("logits", "NaN or infinity", "finite: the model has diverged")
    index = np.broadcast_to(chosen[:, None], (*values.shape[:-1], 1))
    own = np.take_along_axis(values, index, axis=-1)[..., 0]
    others = values.copy()
    np.put_along_axis(others, index, -np.inf, axis=-1)
    return own - logsumexp(others, axis=-1)
