"""How Sphinx builds the site: `make docs`.

The source is the whole repository, so that a link between two pages holds on the site as it does beside the code.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

project = "artreplay"
author = "the artreplay developers"
project_copyright = "the artreplay developers, MIT licence"
release = re.findall(r'__version__ = "(.*?)"', (ROOT / "src/artreplay/__init__.py").read_text(encoding="utf-8"))[0]

extensions = ["myst_nb"]
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
suppress_warnings = ["myst.header"]  # CHANGELOG.md has no other levels

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True

html_theme = "furo"
html_title = "artreplay"
html_baseurl = ""
html_copy_source = False
html_show_sphinx = False
html_extra_path = ["site"]
html_static_path = ["static"]
html_css_files = ["site.css"]
