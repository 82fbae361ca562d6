"""Prints what becomes of the documents' examples."""

from __future__ import annotations

from tests.support.examples import told
from tests.test_docs_examples import NOT_RUN, names_run

print(told(len(names_run()), len(NOT_RUN)))
for name, reason in NOT_RUN.items():
    print(f"  {name}: {reason}")
