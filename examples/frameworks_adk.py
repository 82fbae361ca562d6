"""An agent of Google's ADK with McpToolset: elicitations at the terminal, `_meta` in the function responses.

    python frameworks_adk.py URL "question"

Needs what its model needs (GOOGLE_API_KEY for Gemini). Whoever keeps ADK's own McpToolset gives it the same handlers:
`McpToolset(connection_params=..., elicitation_callback=elicitation_callback())`.
"""

import asyncio
import sys

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part

from gopher_mcp_python import McpToolset
from gopher_mcp_python.integrations.adk import AdkToolset


async def main(url: str, question: str, model: str | BaseLlm = "gemini-2.5-flash") -> None:
    toolset = AdkToolset(McpToolset(url, elicitation_handler={}))
    runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[toolset]), app_name="example")
    session = await runner.session_service.create_session(app_name="example", user_id="me")
    message = Content(role="user", parts=[Part(text=question)])
    async for event in runner.run_async(user_id="me", session_id=session.id, new_message=message):
        for response in event.get_function_responses():
            print(response.name, response.response)
    await runner.close()  # closes the toolset, too


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
