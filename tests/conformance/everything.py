"""What the conformance suite wants of a server, on the SDK's low-level server: the one behind the gateway."""

from __future__ import annotations

import base64
import json
import warnings
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0").decode()
SCHEMA_2020: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
USER = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
OPTIONS = ["option1", "option2", "option3"]


def _titled(word: str) -> list[dict[str, str]]:
    return [{"const": f"value{n}", "title": f"{name} {word}"} for n, name in enumerate(("First", "Second", "Third"), 1)]


ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("Choice")}},
    },
}
_TEXT = "This is a simple text response for testing."


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def _resource(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    inside = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(type="resource", resource=inside)


class Tools:
    """Each method is a tool: its name, and what comes of it."""

    async def test_simple_text(self, ctx: Any, arguments: Any) -> Any:
        return [_text(_TEXT)]

    async def test_image_content(self, ctx: Any, arguments: Any) -> Any:
        return [_image()]

    async def test_audio_content(self, ctx: Any, arguments: Any) -> Any:
        return [types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")]

    async def test_embedded_resource(self, ctx: Any, arguments: Any) -> Any:
        return [_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]

    async def test_multiple_content_types(self, ctx: Any, arguments: Any) -> Any:
        inside = _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
        return [_text("Multiple content types test:"), _image(), inside]

    async def test_tool_with_logging(self, ctx: Any, arguments: Any) -> Any:
        for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await ctx.session.send_log_message("info", message, related_request_id=ctx.request_id)
            await anyio.sleep(0.05)
        return [_text("logged")]

    async def test_error_handling(self, ctx: Any, arguments: Any) -> Any:
        text = _text("This tool intentionally returns an error for testing")
        return types.CallToolResult(content=[text], is_error=True)

    async def test_tool_with_progress(self, ctx: Any, arguments: Any) -> Any:
        for at in (0, 50, 100):
            await ctx.session.report_progress(at, 100)
            await anyio.sleep(0.05)
        return [_text("progressed")]

    async def test_sampling(self, ctx: Any, arguments: Any) -> Any:
        asked = types.SamplingMessage(role="user", content=_text(arguments["prompt"]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = await ctx.session.create_message([asked], max_tokens=100, related_request_id=ctx.request_id)
        return [_text(f"LLM response: {answer.content.text}")]

    async def test_elicitation(self, ctx: Any, arguments: Any) -> Any:
        answer = await ctx.session.elicit_form(arguments["message"], USER, ctx.request_id)
        return [_text(f"User response: action={answer.action}, content={json.dumps(answer.content)}")]

    async def test_elicitation_sep1034_defaults(self, ctx: Any, arguments: Any) -> Any:
        return await self._completed(ctx, DEFAULTS)

    async def test_elicitation_sep1330_enums(self, ctx: Any, arguments: Any) -> Any:
        return await self._completed(ctx, ENUMS)

    async def json_schema_2020_12_tool(self, ctx: Any, arguments: Any) -> Any:
        return [_text("fine")]

    @staticmethod
    async def _completed(ctx: Any, schema: Any) -> Any:
        answer = await ctx.session.elicit_form("Please fill this in.", schema, ctx.request_id)
        return [_text(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")]


TOOLS = [name for name in vars(Tools) if not name.startswith("_")]
STATIC = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", None),
    "test://watched-resource": ("text/plain", "Watched."),
}
PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
}


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    hints = types.ToolAnnotations(destructive_hint=False)
    schemas = {"json_schema_2020_12_tool": SCHEMA_2020}
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=name,
                description=f"{name} of the conformance suite",
                input_schema=schemas.get(name, {"type": "object"}),
                annotations=hints,
            )
            for name in TOOLS
        ]
    )


async def call_tool(ctx: Any, params: Any) -> Any:
    result = await getattr(Tools(), params.name)(ctx, params.arguments or {})
    return types.CallToolResult(content=result) if isinstance(result, list) else result


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=uri, name=uri[7:], description=f"{uri[7:]} of the suite", mime_type=kind)
            for uri, (kind, _) in STATIC.items()
        ]
    )


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(name="data", uri_template="test://template/{id}/data")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri in STATIC:
        kind, text = STATIC[uri]
        if text is None:
            found: Any = types.BlobResourceContents(uri=uri, mime_type=kind, blob=PNG)
        else:
            found = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    else:
        id = uri.removeprefix("test://template/").removesuffix("/data")
        data = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
        found = types.TextResourceContents(uri=uri, mime_type="application/json", text=data)
    return types.ReadResourceResult(contents=[found])


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=f"{name} of the suite",
                arguments=[types.PromptArgument(name=argument, required=True) for argument in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
    given = params.arguments or {}
    contents: dict[str, list[Any]] = {
        "test_simple_prompt": [_text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            _text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            _resource(given.get("resourceUri", ""), "text/plain", "Embedded resource content for testing."),
            _text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [_image(), _text("Please analyze the image above.")],
    }
    messages = [types.PromptMessage(role="user", content=content) for content in contents[params.name]]
    return types.GetPromptResult(messages=messages)


async def nothing(ctx: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


async def complete(ctx: Any, params: Any) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=["paris", "park", "party"], total=3))


def server() -> Server[Any]:
    """The server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # logging/setLevel is a deprecated one
        made: Server[Any] = Server(
            "everything",
            version="1",
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_list_resources=list_resources,
            on_list_resource_templates=list_templates,
            on_read_resource=read_resource,
            on_subscribe_resource=nothing,
            on_unsubscribe_resource=nothing,
            on_list_prompts=list_prompts,
            on_get_prompt=get_prompt,
            on_completion=complete,
            on_set_logging_level=nothing,
        )
    options = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
    create = made.create_initialization_options
    made.create_initialization_options = lambda *a, **k: create(options)  # type: ignore[method-assign]
    return made
