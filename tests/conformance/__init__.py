"""The public MCP conformance suite against this package: `make conformance`, or `python -m tests.conformance`.

The suite plays the MCP server and the authorization server, starts `client.py` once for each scenario and checks what
it does. `client.py` goes through the public interface only, on the embedded engine; `browser.py` is its browser.
"""
