"""The native bridge: `_bridge`, one Cython module between libgopher-orch's callbacks and Python.

Importing it opens no vendor library.
"""
