"""One elicitation at 100, 10,000 and 1,000,000 users at once: measured where this machine can, simulated beyond.

python -m benchmarks.scale measure [--seconds S]    service times on a real server -> measured.json
python -m benchmarks.scale simulate                 what follows from them -> simulated.json
python -m benchmarks.scale page                     tables and plot of docs/scale.md, from the two files
"""
