"""What the site adds to its pages: filters of the gallery, and what readers of a screen need from the theme."""

from __future__ import annotations

from html import escape
from typing import Any

from experiments.gallery import PAPERS, Verdict

MARK = '<div class="filters"></div>'
"""Where the gallery's page wants its filters. They are radio buttons that a style sheet reads: no script."""


def filters() -> str:
    """One group of radio buttons for papers, one for verdicts."""
    papers = {slug: slug.replace("-", " ") for slug in PAPERS}
    verdicts = {verdict.name.lower(): verdict.value for verdict in Verdict}
    return f'<div class="filters">{_group("paper", papers)}{_group("verdict", verdicts)}</div>'


def _group(name: str, choices: dict[str, str]) -> str:
    rows = [_button(name, key, words) for key, words in {"all": "all", **choices}.items()]
    return f"<fieldset><legend>{name}</legend>{''.join(rows)}</fieldset>"


def _button(name: str, key: str, words: str) -> str:
    ticked = " checked" if key == "all" else ""
    return f'<label><input type="radio" name="{name}" id="{name}-{key}"{ticked}>{escape(words)}</label>'


def rules() -> str:
    """The style rules of the filters: who is not chosen is not shown."""
    pairs = [("paper", slug) for slug in PAPERS] + [("verdict", verdict.name.lower()) for verdict in Verdict]
    return "".join(f".gallery:has(#{name}-{key}:checked) .entry:not(.{key}){{display:none}}" for name, key in pairs)


def changed(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Put the filters in their place; give the captions of the sidebar the level that ARIA asks for."""
    if MARK in context.get("body", ""):
        context["body"] = context["body"].replace(MARK, f"<style>{rules()}</style>{filters()}")
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Any) -> dict[str, bool]:
    """After the theme, which makes the sidebar."""
    app.connect("html-page-context", changed, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
