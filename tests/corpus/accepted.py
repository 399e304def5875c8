"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

ACCEPTED: dict[str, str] = {
    "surface/names; curves/ProfileTradeOff": "a second engine beside polygon_above, which nothing used but from_pld",
}
