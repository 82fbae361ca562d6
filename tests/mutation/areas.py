"""What is mutated, and which tests have to notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gopher_mcp_python"


@dataclass(frozen=True)
class Area:
    """Modules, and files of tests in the order in which they are tried."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def paths(self) -> list[Path]:
        return sorted(path for name in self.modules for path in PACKAGE.glob(name) if path.name != "__init__.py")


AREAS = {
    "elicitation": Area(
        ("elicitation_runtime.py", "elicitor.py", "elicitation.py", "answered.py", "answers.py", "asking.py"),
        ("elicitation_runtime", "elicitation", "elicitation_elicitor", "elicitation_answered", "elicitation_urls",
         "handler_chain", "agent_events", "toolset_elicitation", "elicitation_drive"),
    ),
    "forms": Area(
        ("forms/*.py",),
        ("forms_schema", "forms_validate", "forms_formats", "forms_judging", "forms_pattern", "handlers_form",
         "forms_judge"),
    ),
    "store": Area(
        tuple(f"store/{name}.py" for name in ("core", "responses", "memory", "model", "payload", "approvals", "acting",
                                              "rows", "audit", "sealing", "outcome")),
        ("store_responses", "store_edges", "store_suite", "store_audit", "store_handler", "store_sqlite"),
    ),
    "gate": Area(
        ("gateway/rules.py", "gateway/approvals.py", "gateway/held.py"),
        ("gateway_rules", "gateway_approvals", "gateway_held"),
    ),
}  # fmt: skip
