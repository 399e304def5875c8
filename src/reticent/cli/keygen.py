"""``reticent keygen``: a key pair to sign with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from reticent.cli._asking import asking, told
from reticent.cli._keys import new_passphrase
from reticent.verbs.keys import Keygen


def _do(request: Keygen, given: Mapping[str, Any], json: bool) -> None:
    found = request.answer(passphrase=new_passphrase() if request.encrypt else None)
    told(found, given, json, lambda found, given: click.echo("\n".join(found.lines())))


ASKED = {Keygen: _do}
keygen = asking(
    "keygen", Keygen, _do, help="Make an Ed25519 key pair for signing certificates; nothing is overwritten."
)
