"""Figures of this package, next to those of the published one, on the machine at hand.

`python -m benchmarks` (make bench) runs all and prints one table; `python -m benchmarks.callback --json` (registry,
signin, startup, toolcall) prints one JSON object. A ratio always compares two things measured in turns in one run.
"""
