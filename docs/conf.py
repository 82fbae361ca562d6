"""The site that `make docs` builds: the pages of this folder, and the reference from the docstrings.

A warning is an error there, so every link between pages, every anchor and every name in the reference is checked.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import gopher_mcp_python

project = "gopher-mcp-python"
release = version = gopher_mcp_python.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sphinx = False

myst_heading_anchors = 4  # as on GitHub, where the same pages are read
myst_enable_extensions = ["colon_fence"]

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False
napoleon_use_ivar = True
napoleon_use_rtype = False
nitpicky = False  # types of other packages have no page here

# What examples show is often a part of a file or of a protocol ("..."), which no lexer reads.
# And names of attributes ("name") would be links, to whichever class has one of that name.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]

_REPOSITORY_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)\)")
_STARS = re.compile(r"(?<![\w*`])\*+(?=[^\s*]+(?:[\s,.)]|$))(?![^*]*\*)")
_QUOTED = re.compile(r"(?<![:`])`([^`\n]+)`(?![`_])")


# Classes of frameworks that our extras need, by module: only the bases of ours, and of no use here.
_BASES = {
    "google.adk.tools.base_tool": {"BaseTool": object},
    "google.adk.tools.base_toolset": {"BaseToolset": object},
    "google.genai.types": {"FunctionDeclaration": object},
    "langchain_core.tools": {"StructuredTool": object, "ToolException": Exception},
}


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it lies in
        return False


def _stand_in() -> None:
    """Where a framework is not installed, empty classes stand in for those of it that are imported."""
    for module in [module for module in _BASES if not _is_installed(module)]:
        parts = module.split(".")
        for name in [".".join(parts[:end]) for end in range(1, len(parts) + 1)]:
            sys.modules.setdefault(name, ModuleType(name))
        for name, base in _BASES[module].items():
            setattr(sys.modules[module], name, type(name, (base,), {"__module__": module}))


def _without_repository_links(app: Any, name: str, source: list[str]) -> None:
    """Links to folders and texts of the repository lead somewhere there only: here their names stand for them."""

    def plain(link: re.Match[str]) -> str:
        target = (Path(app.srcdir) / name).parent / link[2]
        return link[0] if target.is_file() and target.suffix != ".md" else f"{link[1]} (`{link[2].lstrip('./')}`)"

    source[0] = _REPOSITORY_LINK.sub(plain, source[0])


def _code_in_docstrings(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Docstrings write code as Markdown does: `in quotes`, or as a block that is indented after a blank line."""
    made: list[str] = []
    for line in lines:
        told = [one for one in made if one]
        if line.startswith("    ") and made and not made[-1] and told and not told[-1].startswith(" "):
            made += [] if told[-1].endswith(":") else ["::", ""]
        made.append(_STARS.sub(r"\\\g<0>", _QUOTED.sub(r"``\1``", line)))
    lines[:] = made


def setup(app: Any) -> None:
    _stand_in()
    app.connect("source-read", _without_repository_links)
    app.connect("autodoc-process-docstring", _code_in_docstrings, priority=400)  # before napoleon's
