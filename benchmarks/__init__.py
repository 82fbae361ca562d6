"""Figures of this package, next to those of the published one and others, on the machine at hand.

`python -m benchmarks` (make bench) runs all, prints one table, and leaves results and plots in build/benchmarks;
`python -m benchmarks --page` makes docs/benchmarks.md of them. `python -m benchmarks.callback --json` (or another
module) prints one JSON object. A ratio always compares two things measured in turns in one run.
"""
