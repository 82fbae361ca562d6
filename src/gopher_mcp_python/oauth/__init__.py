"""First-step OAuth: signing in to the MCP server itself. It has nothing to do with elicitation."""
