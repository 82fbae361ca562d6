"""The form on a full terminal. `prompt_toolkit` reads its keys, edits its texts and knows its escape sequences; the
loop is our own, since a prompt has to work on any thread, beside any event loop, and leave signals alone.

Nothing here is imported before there is a form to show on a terminal that can show it.
"""
