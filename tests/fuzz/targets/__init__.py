"""The fuzz targets in Python. Each is a module with

one_input(data)   one try; whatever it raises is a finding
WORDS             values and names that it knows, for inputs that are JSON; empty: inputs are bytes
mutate            where it has one: changes an input: (data, largest size, seed) -> data
LARGEST           bytes that an input may have
close             where it has one: gives back what the target keeps from one input to the next
"""

from __future__ import annotations

_PACKAGE = "gopher_mcp_python"
# Name -> what is instrumented, so that its coverage leads the search. The bridge is compiled and can't be.
PYTHON_TARGETS: dict[str, tuple[str, ...]] = {
    name: tuple(f"{_PACKAGE}.{part}" for part in parts.split())
    for name, parts in {
        "decode": "ffi",
        "display": "authorization_text display hostnames redaction weburl",
        "forms": "forms handlers.form handlers.form_texts serve.drafts",
        "patterns": "forms",
        "store": "store forms toolset.canonical",
        "rest": "serve store forms handlers.form",
        "versions": "native.compat native.names native.versions",
    }.items()
}
