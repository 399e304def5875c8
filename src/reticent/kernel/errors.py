"""The exception tree: everything reticent raises on purpose derives from ``ReticentError``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reticent.kernel.messages import Message, said
from reticent.kernel.text import printable


class ReticentError(Exception):
    """Base class; its text is one line that a user can act on, and foreign text in it is safe to show."""

    def __str__(self) -> str:
        return printable(super().__str__())

    @property
    def reason(self) -> Message:
        """What a document and its page say of it: the message that it was raised with, else its English text."""
        return said(self.args[0] if self.args and isinstance(self.args[0], Message) else str(self))


class ParameterError(ReticentError, ValueError):
    """An argument is outside its domain.

    Attributes:
        name: the argument as the library spells it (``noise_multiplier``).
        value: what was given.
        allowed: what is allowed, in words.
        shown: whether the message ends with the value; not where the argument is missing, or has to be left out.
        says: the whole error as a message, where pages show it.
    """

    def __init__(
        self, name: str, value: object, allowed: str, *, shown: bool = True, says: Message | None = None
    ) -> None:
        self.name, self.value, self.allowed, self.shown = name, value, allowed, shown
        super().__init__(says or f"{name} must be {allowed}" + (f", got {value!r}" if shown else ""))


class UnsupportedError(ReticentError):
    """A well-formed question that reticent has no proven answer to; the text says why."""


class MissingError(UnsupportedError, ImportError):
    """An extra of reticent is not installed; the text says how to install it."""


class DominanceError(ReticentError):
    """An adversary came out stronger than the worst case of the same release: a bug, not a result."""


class DataError(ReticentError):
    """A data file is missing, corrupt or not what its checksum says."""


class ArtifactError(ReticentError):
    """A run directory, certificate or configuration is missing, half written, corrupt or hostile."""


class WorkerError(ReticentError):
    """Those who were to do the work are gone or stuck; the text says what is kept and how to go on."""


class NumericalError(ReticentError):
    """A certified computation could not reach its accuracy; nothing is returned instead."""


class ExtensionError(ReticentError):
    """Another package offers a mechanism, an attacker or an attack that cannot be used; the text names the package."""


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """A block of imports that come with an extra.

    Args:
        what: needs them, for the message.
        extra: that brings them.

    Raises:
        MissingError: one of them is not installed; the text says how to install it.
    """
    try:
        yield
    except MissingError:
        raise
    except ImportError as error:
        raise MissingError(f"{what} needs an extra: pip install 'reticent[{extra}]' ({error})") from None
