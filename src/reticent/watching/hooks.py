"""What a loop calls of a watch: whatever goes wrong there, training goes on, and the ledger says so.

Hooks lie in a model that the program may copy, or save as a whole, while it is watched.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from reticent.watching.live import BudgetSpent


def guarded(look: Callable[..., Any], failed: Callable[[], None]) -> Callable[..., Any]:
    """What the loop calls in the place of ``look``: an error in it is printed, and ``failed`` says so in the ledger.

    Only the end of a budget that the program asked for ends the loop.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return look(*args, **kwargs)
        except BudgetSpent:
            raise
        except Exception:  # the loop must go on
            traceback.print_exc()
            failed()
            return None

    return call


class Hook:
    """A hook that changes no number.

    A copy of the model reports to the same watch. A file of the model gets a call that does nothing instead: what a
    watch knows of the loop and its records is no part of a checkpoint.
    """

    reticent_watches: ClassVar[bool] = True  # so recorders let it pass

    def __init__(self, call: Callable[..., None]) -> None:
        self._call = call

    def __call__(self, *args: Any) -> None:
        self._call(*args)

    def __deepcopy__(self, _memo: Any) -> Hook:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return partial, (sys.audit, "reticent.watched")  # takes anything, gives None, and needs nothing installed


def owner_of(hook: Any) -> Any:
    """The object whose method a hook is."""
    return getattr(getattr(hook, "func", hook), "__self__", None)
