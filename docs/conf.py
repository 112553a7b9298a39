"""How Sphinx builds the site: `make docs`.

The source is the whole repository, so that a link between two pages holds on the site as it does beside the code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

project = "artreplay"
author = "the artreplay developers"
project_copyright = "the artreplay developers, MIT licence"
release = re.findall(r'__version__ = "(.*?)"', (ROOT / "src/artreplay/__init__.py").read_text(encoding="utf-8"))[0]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "docs/**.md",
    "packages/*/README.md",
    "packages/*/docs/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "benchmarks", "build", "examples", "reproduction", "src", "tests"]
suppress_warnings = [
    "myst.header",  # CHANGELOG.md has no other levels
    "misc.highlighting_failure",  # of a command that goes over two lines of a cell
]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "html_image"]
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_merge_streams = True

default_role = "literal"  # in a docstring, single backquotes are code
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the text of a parameter says what it is
napoleon_google_docstring = False
napoleon_attr_annotations = False
smartquotes_action = "D"  # dashes, and no curly quotes: `"++"` is to be typed

html_theme = "furo"
html_title = "artreplay"
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # it would fetch pages, which browsers forbid where the site is opened as files
html_extra_path = ["site"]
html_static_path = ["static"]
html_css_files = ["site.css"]

MADE_BY_CALLS = {
    f"artreplay.{name}" for name in ("Study", "Runs", "Comparison", "Evaluation", "Cell", "Contradiction", "Decision")
} | {"artreplay.history.StoredLog", "artreplay.replay.policy.Policy"}


def end_parameters(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """End the list of parameters where a paragraph or an example follows it: napoleon wants two empty lines there."""
    if "Parameters" not in lines:
        return
    start = lines.index("Parameters") + 2
    after = [at for at in range(start, len(lines)) if lines[at] and lines[at][0] != " " and lines[at - 1] == ""]
    if after:
        lines.insert(after[0], "")


def mark_required(
    app: object, what: str, name: str, thing: object, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Show a parameter that has to be given without a default, and no parameters of what only the package makes."""
    if name in MADE_BY_CALLS:
        return "", returns
    return (
        signature and signature.replace("=<required>", "").replace("<built-in function time>", "time.time")
    ), returns


def setup(app: Any) -> None:
    """Connect the functions above; Sphinx calls this."""
    app.connect("autodoc-process-signature", mark_required)
    app.connect("autodoc-process-docstring", end_parameters, priority=100)  # before napoleon
