"""Whether 32 bytes are a public key of Ed25519 that can be trusted to be one: canonical, and of the large order.

A key of small order accepts signatures that nobody made, and an encoding that is not canonical gives one key two names.
Libraries differ in what they let pass (RFC 8032, section 5.1.3); this is the strictest reading.
"""

from __future__ import annotations

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]
_ZERO: _Point = (0, 1, 1, 0)


def why_not(raw: bytes) -> str | None:
    """Why ``raw`` is no public key to trust, or None.

    Args:
        raw: the 32 bytes of an encoded point.
    """
    point = _decoded(raw)
    if point is None:
        return "is no point of the curve in its one encoding"
    if _is_zero(_times(8, point)):
        return "has a small order: it accepts signatures that nobody made"
    return None if _is_zero(_times(_L, point)) else "is not in the group that signatures are made in"


def _decoded(raw: bytes) -> _Point | None:
    if len(raw) != 32:
        return None
    number = int.from_bytes(raw, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * _ROOT % _P
    if x * x % _P != square or (x == 0 and sign):
        return None
    x = _P - x if x & 1 != sign else x
    return x, y, 1, x * y % _P


def _sum(p: _Point, q: _Point) -> _Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % _P, (p[1] + p[0]) * (q[1] + q[0]) % _P
    c, d = 2 * p[3] * q[3] * _D % _P, 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(count: int, point: _Point) -> _Point:
    found = _ZERO
    while count:
        if count & 1:
            found = _sum(found, point)
        point, count = _sum(point, point), count >> 1
    return found


def _is_zero(point: _Point) -> bool:
    return point[0] % _P == 0 and (point[1] - point[2]) % _P == 0
