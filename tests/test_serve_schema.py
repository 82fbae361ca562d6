"""The OpenAPI document against the running server: schemathesis with all its checks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gopher_mcp_python.serve.openapi import document
from gopher_mcp_python.store import model
from tests.support import children, frameworks
from tests.support.serving import Serving, one_for_many_tests
from tests.test_serve_api import form, page

# What an answer may be, the elicitation says (its response_schema), not the document: such a 422 is no fault. Nor is it
# one that the bytes of a file have to be of its type, and that a large wrong body is refused as large.
CONFIGURATION = """
checks.negative_data_rejection.expected-statuses = ["4xx", "5xx"]

[dictionaries]
texts.values = {texts}
forms.values = {forms}
files.values = {files}
pages.values = {pages}

[[operations]]
include-operation-id = "respond"
parameters = {{ "path.id" = {{ dictionary = "texts", probability = 0.8 }} }}
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]

[[operations]]
include-operation-id = "check"
parameters = {{ "path.id" = {{ dictionary = "forms", probability = 0.8 }} }}
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]

[[operations]]
include-operation-id = "file"
parameters = {{ "path.id" = {{ dictionary = "files", probability = 0.8 }} }}
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "415", "422", "429"]

[[operations]]
include-operation-id = ["show", "cancel"]
parameters = {{ "path.id" = {{ dictionary = "pages", probability = 0.8 }} }}
"""


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with one_for_many_tests(tmp_path) as running:
        yield running


def _command() -> str:
    """schemathesis, in an environment of its own: it is a plugin of pytest, too."""
    return str(frameworks.python("schemathesis").with_name("schemathesis"))


def _run(serving: Serving, folder: Path, *options: str, seconds: float = 160) -> None:
    kinds = {
        "texts": model.string_input("?"), "forms": form(), "files": model.file_upload("?"),
        "pages": page("https://a.example/"),
    }  # fmt: skip
    asked = {
        kind: [serving.store.create("ada", new, timeout_s=1800).id for _ in range(20)] for kind, new in kinds.items()
    }
    file = folder / "schemathesis.toml"
    file.write_text(CONFIGURATION.format(**{kind: json.dumps(ids) for kind, ids in asked.items()}))
    done = subprocess.run(
        [
            _command(), "--config-file", str(file), "run", f"{serving.url}/openapi.json", "--checks", "all",
            "--header", f"Authorization: Bearer {serving.answer}",
            # A stream that never ends; its own tests are in test_serve_feed.py.
            "--exclude-path", "/v1/mcp/elicitations/events", "--seed", "1", "--no-color", *options,
        ],
        cwd=folder, env=children.environment(), capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    print("\n".join(line for line in done.stdout.splitlines() if "generated" in line))
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert serving.get("/ready").status == 200


def test_all_checks_of_schemathesis(serving: Serving, tmp_path: Path) -> None:
    _run(serving, tmp_path, "--phases", "coverage")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_all_checks_of_schemathesis_at_length(serving: Serving, tmp_path: Path) -> None:
    _run(serving, tmp_path, "--max-examples", "60", seconds=840)


def test_every_path_of_the_document_is_there(serving: Serving) -> None:
    told = document()
    assert serving.get("/openapi.json", token=None).json == told
    routes = {(route.path, method) for route in serving.app.routes for method in route.methods}  # type: ignore[attr-defined]
    described = {
        (path, method.upper()) for path, item in told["paths"].items() for method in item if method != "parameters"
    }
    assert described <= routes
    rest = {path for path, _ in routes - described if path.startswith("/v1")}
    assert rest <= {path for path, _ in described}, "HEAD beside GET, and nothing that the document does not tell"
