"""Settings of the documentation site: `make site` builds it, and every warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import landing
import pages

from reticent import __version__

project = "reticent"
author = "the reticent maintainers"
copyright = "2026, the reticent maintainers. Apache-2.0"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    *([] if tags.has("without_source") else ["sphinx.ext.viewcode"]),  # noqa: F821  (Sphinx says which tags there are)
    "sphinx_copybutton",
    "mathml",
    "sphinx_click",
    "inline_formulas",
    "site_pages",
]
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "**/*.py"]
smartquotes = False  # "--option" must stay what it is

html_theme = "furo"
_LETTERS = '"Iowan Old Style", "Palatino Linotype", Palatino, "Book Antiqua", Georgia, serif'
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#00508a",
        "color-brand-content": "#00508a",
        "color-background-secondary": "#f7f6f2",
        "font-stack--headings": _LETTERS,
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc0f5",
        "color-brand-content": "#7cc0f5",
        "color-background-primary": "#16181b",
        "color-background-secondary": "#1d2024",
        "font-stack--headings": _LETTERS,
    },
}
html_title = "reticent"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_extra_path = ["../src/reticent/certificates/templates/verify.html", "_build/live"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_math_renderer = "mathml"
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_logo = "figures/logo.svg"
html_favicon = "figures/logo.svg"
html_copy_source = False
html_show_sphinx = False
pygments_style = "default"  # every colour has the contrast that WCAG AA asks for
pygments_dark_style = "github-dark"

myst_enable_extensions = ["deflist", "colon_fence", "dollarmath"]
myst_dmath_allow_labels = False
myst_heading_anchors = 3
copybutton_prompt_text = r"^\$ "
copybutton_prompt_is_regexp = True

suppress_warnings = ["ref.python"]  # two rooms may have a class of one name, as Run
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
autosummary_generate = True
napoleon_google_docstring = True
napoleon_use_rtype = False
napoleon_use_ivar = True


def setup(app: object) -> None:
    """Write the pages that are made, and a certificate to open, before Sphinx reads them."""
    pages.write(Path(__file__).parent)
    landing.certificate(Path(__file__).parent / "_build" / "live")
