"""`python -m gopher_mcp_python` is the command `gopher-mcp`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
