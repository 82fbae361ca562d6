"""What other frameworks take: callbacks for their MCP clients, and `McpToolset` as a toolset or as tools of theirs.

Each module names the framework that it is for; none of them imports one before it is used.
"""
