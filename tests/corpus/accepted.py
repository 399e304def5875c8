"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_FORMAT = "documents hold messages: keys with values"
_TYPE = "what is said is a Message, not a text"
ACCEPTED: dict[str, str] = {
    "*/schema": _FORMAT,
    "*/infers": "the comma before what an average is over belongs to the sentence around it",
    "surface/schema; *": _FORMAT,
    "surface/names; *": _TYPE,
    "certificates/*/pages/fr": "before the semicolon of an enclosure without a finite end stood another blank",
}
