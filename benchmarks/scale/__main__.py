"""See the package."""

from __future__ import annotations

import argparse
import json
import os
import platform
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MEASURED, SIMULATED = HERE / "measured.json", HERE / "simulated.json"


def main() -> int:
    """Run the steps that are named, in this order."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("steps", nargs="+", choices=("measure", "simulate", "page"))
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measured point (default: 3)")
    args = parser.parse_args()
    if "measure" in args.steps:
        _write(MEASURED, _measured(args.seconds))
    if "simulate" in args.steps:
        from benchmarks.scale.model import simulate

        _write(SIMULATED, simulate(json.loads(MEASURED.read_text())))
    if "page" in args.steps:
        from benchmarks.scale.page import write

        write(json.loads(MEASURED.read_text()), json.loads(SIMULATED.read_text()))
    return 0


def _measured(seconds: float) -> dict[str, Any]:
    from benchmarks.scale import database, memory
    from tests.support import store_postgres

    found: dict[str, Any] = {"machine": _machine(seconds), **memory.measure(seconds)}
    with store_postgres.running(durable=True) as server:
        place = store_postgres.database(server)
        found["machine"]["postgres"] = _version(place)
        return found | database.measure(server, place, seconds)


def _machine(seconds: float) -> dict[str, Any]:
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "kind": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "seconds_per_point": seconds,
    }


def _version(place: Any) -> str:
    import psycopg

    with psycopg.connect(place.superuser) as connection:
        return str(connection.info.server_version // 10_000)


def _write(path: Path, found: Any) -> None:
    path.write_text(json.dumps(_rounded(found), indent=1) + "\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    """Four digits; more are noise."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    raise SystemExit(main())
