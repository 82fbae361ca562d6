"""The same scenarios on both engines: the vendor's real library and the embedded one, against a real MCP server.

Each runs in a process of its own (`python -m tests.scenarios.driver`), since a loaded vendor library stays loaded and
changes what the process can import after it.
"""
