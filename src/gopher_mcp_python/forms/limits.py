"""What is read of a form, at most. A server's schema is a stranger's text: each limit is far above what a person would
fill in, and an error names the limit that was passed. Together they bound the time: reading a form ends within a second
or two on a slow machine, and so does validating an answer.
"""

from __future__ import annotations

MAX_FIELDS = 2_000  # in one form
MAX_OPTIONS = 5_000  # of one field
MAX_ALL_OPTIONS = 20_000  # of all fields of a form together
MAX_DEPTH = 32  # objects and lists inside each other, in the schema
MAX_VALUES = 100_000  # objects, lists, texts, numbers ... in the schema
MAX_CHARACTERS = 2_000_000  # of the schema as JSON text
MAX_NAME = 1_000  # characters of a field's name
MAX_TITLE = 2_000  # characters of a title, also of an option's
MAX_DESCRIPTION = 50_000  # characters of a description
MAX_PATTERN = 2_000  # characters of a pattern
MAX_ALL_PATTERNS = 50_000  # characters of all different patterns of a form
MAX_REFS = 16  # a $ref to a $ref to a $ref ...
MAX_STEPS = 20_000  # schemas looked at to find out what the fields are; a $ref counts each time
MAX_CHECKS = 500_000  # schemas, keywords, members looked at while an answer is judged (see judge.py), under a second
MAX_NESTED = 100  # schemas within schemas while an answer is judged; a $ref is one more

MAX_TEXT = 1_000_000  # characters of one answer
MAX_CHOSEN = 10_000  # items of one answer
MAX_CONTENT = 10_000  # answers of one form
MAX_DIGITS = 400  # of a number, in the schema or an answer; the largest double has 309
PATTERN_STEPS = 2_000_000  # of all patterns of one form together, about a second; each has pattern.PATTERN_STEPS
