#!/bin/sh
# Runs create_by_url.py with a query.
#   ./create_by_url_run.sh "get mail profile, using get_gmail_users_get_profile"
# GOPHER_MCP_URL, GOPHER_MCP_PROVIDER and GOPHER_MCP_MODEL choose server and model; PYTHON chooses the interpreter.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "${PYTHON:-python3}" "$here/create_by_url.py" "$@"
