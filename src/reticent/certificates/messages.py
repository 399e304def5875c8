"""What stands at the top of a page, with placeholders, as a checker in the browser compares it in each language.

All other sentences that a page composes are in the catalogues (``translations/de.po``) and nowhere else.
"""

from __future__ import annotations

from reticent.certificates.sentences import HIDDEN_DRAWS, Protected, asked_about
from reticent.mechanisms import Neighbouring

PEOPLE: tuple[Protected, ...] = (None, 1, 2)
"""Who may be protected: one record, or one or several records of a person."""

ANSWERS = (
    "Asked {question}, an attacker is right at most {share} of the time, if both answers are equally likely "
    "beforehand. Without the model: {blind}.",
    "An attacker can become all but certain {question}. This release hides next to nothing.",
    "Nothing is proven that keeps an attacker from being all but certain {question}.",
    HIDDEN_DRAWS,
)
STRENGTHS = ("at most {share}", "about {share}", "measured {share}")


def questions() -> list[str]:
    """What the worst case is asked, in the words of a headline."""
    return [asked_about(one, people) for one in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE) for people in PEOPLE]
