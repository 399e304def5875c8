"""``reticent register``: all releases from one data set, and what its budget leaves."""

from __future__ import annotations

from reticent.cli._app import REQUEST, Listing
from reticent.cli._asking import asking, showing
from reticent.cli._keys import private_key
from reticent.verbs.registering import AddToRegister, OpenRegister, ShowRegister

_sign = showing(unlock=private_key)
ASKED = {OpenRegister: _sign, AddToRegister: _sign, ShowRegister: showing()}
_MADE = {name: asking(name, kind, ASKED[kind]) for name, kind in zip(("open", "add", "show"), ASKED, strict=True)}
register = Listing(
    "register",
    lambda: {name: str(one.help) for name, one in _MADE.items()},
    _MADE.__getitem__,
    params=[REQUEST],
    help="All releases from one data set.",
)
