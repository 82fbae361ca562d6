"""The tests; `python -m tests.support.…` and `python -m tests.scenarios.driver` run from the project folder."""
