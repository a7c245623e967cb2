"""`mcp-router`: flows as tools, resources and prompts of an MCP server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

from blocks.mcp.protocol import (
    INTERNAL,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NOT_THERE,
    RpcError,
    answer,
    failure,
    is_notification,
    map_param,
    read_call,
    request_id,
    text_param,
    version_for,
)
from blocks.mcp.settings import McpResource, McpRouterSettings, McpTool
from blocks.mcp.uri import UriPattern
from flowrt.engine.block import Block
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.errors import ExpressionError, FlowrtError, describe
from flowrt.expr import Template
from flowrt.message import Message
from flowrt.observe.masking import mask_text

Params = dict[str, Any]
Result = dict[str, Any]


class McpRouter(Block[McpRouterSettings]):
    """Answers a request of the Model Context Protocol: the body is the request, then the answer.

    Put it behind an `http` source, at one path, for POST. It keeps no session: every request stands
    by itself. A notification is answered with 202 and no body. A tool's chain works on a copy of
    the message, with the arguments as its body; one that fails is a result with `isError`, which
    the model reads. Templates of resources and prompts see what was asked for as `body`.

    ```yaml
    - type: mcp-router
      serverName: orders
      tools:
        - name: order_state
          description: The state of an order.
          inputSchema: {type: object, required: [id], properties: {id: {type: string}}}
          process:
            - type: object-read
              settings: {key: '"orders/" + body.id', default: '{"state": "unknown"}'}
    ```
    """

    Settings = McpRouterSettings

    def __init__(self, settings: McpRouterSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._name = settings.server_name or site.named or "flowrt"
        self._tools = {
            tool.name: (tool, site.chain(tool.process, tool.name)) for tool in settings.tools
        }
        self._resources = [
            (each, site.template(each.resource, ("resources", index, "resource")), _matching(each))
            for index, each in enumerate(settings.resources)
        ]
        self._prompts = {
            each.name: (each, site.template(each.resource, ("prompts", index, "resource")))
            for index, each in enumerate(settings.prompts)
        }
        self._methods: dict[str, Callable[[Params, Message, Run], Awaitable[Result]]] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
        }

    async def run(self, message: Message, run: Run) -> Message:
        body = message.body
        message.raw = False
        message.body_schema = None
        if is_notification(body):
            message.body = None
            message.set("httpStatus", 202)
            return message
        try:
            call = read_call(body)
            method = self._methods.get(call.method)
            if method is None:
                raise RpcError(METHOD_NOT_FOUND, f"there is no method {call.method!r}")
            message.body = answer(call.id, await method(call.params, message, run))
        except RpcError as error:
            message.body = failure(request_id(body), error)
        return message

    async def _initialize(self, params: Params, _: Message, __: Run) -> Result:
        offered = {"tools": self._tools, "resources": self._resources, "prompts": self._prompts}
        return {
            "protocolVersion": version_for(params.get("protocolVersion")),
            "capabilities": {name: {} for name, entries in offered.items() if entries},
            "serverInfo": {"name": self._name, "version": version("flowrt")},
        }

    async def _ping(self, _: Params, __: Message, ___: Run) -> Result:
        return {}

    async def _list_tools(self, _: Params, __: Message, ___: Run) -> Result:
        left_out = {"process"}
        return {"tools": [_shown(tool, left_out) for tool, _ in self._tools.values()]}

    async def _call_tool(self, params: Params, message: Message, run: Run) -> Result:
        name, arguments = text_param(params, "name"), map_param(params, "arguments")
        if name not in self._tools:
            raise RpcError(INVALID_PARAMS, f"there is no tool {name!r}")
        tool, chain = self._tools[name]
        copy = message.clone()
        copy.body = arguments
        try:
            done = await chain.run(copy, run)
        except FlowrtError as error:
            return _told(mask_text(describe(error)), failed=True)
        if done is None:
            return _told("the tool produced no result", failed=True)
        # A chain that stops has refused the call: `validate` does it, with a body that says why.
        return _result(tool, done.body, failed=done.stop)

    async def _list_resources(self, _: Params, __: Message, ___: Run) -> Result:
        fixed = [each for each, *_ in self._resources if each.uri is not None]
        return {"resources": [_shown(each, {"resource", "uri_template"}) for each in fixed]}

    async def _list_templates(self, _: Params, __: Message, ___: Run) -> Result:
        open_ = [each for each, *_ in self._resources if each.uri_template is not None]
        return {"resourceTemplates": [_shown(each, {"resource", "uri"}) for each in open_]}

    async def _read_resource(self, params: Params, message: Message, _: Run) -> Result:
        uri = text_param(params, "uri")
        for each, template, match in self._resources:
            if (found := match(uri)) is not None:
                text = _rendered(template, message, found)
                return {"contents": [{"uri": uri, "mimeType": each.mime_type, "text": text}]}
        raise RpcError(NOT_THERE, f"there is no resource {uri!r}")

    async def _list_prompts(self, _: Params, __: Message, ___: Run) -> Result:
        return {"prompts": [_shown(each, {"resource"}) for each, _ in self._prompts.values()]}

    async def _get_prompt(self, params: Params, message: Message, _: Run) -> Result:
        name, arguments = text_param(params, "name"), map_param(params, "arguments")
        if name not in self._prompts:
            raise RpcError(INVALID_PARAMS, f"there is no prompt {name!r}")
        prompt, template = self._prompts[name]
        missing = [
            each.name for each in prompt.arguments if each.required and each.name not in arguments
        ]
        if missing:
            raise RpcError(INVALID_PARAMS, f"the prompt {name!r} needs {', '.join(missing)}")
        text = _rendered(template, message, arguments)
        content = {"type": "text", "text": text}
        described = {"description": prompt.description} if prompt.description else {}
        return {**described, "messages": [{"role": "user", "content": content}]}


def _shown(entry: Any, left_out: set[str]) -> dict[str, Any]:
    shown: dict[str, Any] = entry.model_dump(by_alias=True, exclude=left_out, exclude_none=True)
    return shown


def _told(text: str, *, failed: bool) -> Result:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _result(tool: McpTool, body: Any, *, failed: bool) -> Result:
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    told = _told(text, failed=failed)
    if tool.output_schema is not None and not failed:
        if not isinstance(body, dict):
            return _told(f"the tool promises an object and gave {text}", failed=True)
        told["structuredContent"] = body
    return told


def _matching(resource: McpResource) -> Callable[[str], dict[str, str] | None]:
    """What says whether an address is the resource's, and with which names in it."""
    if resource.uri_template is not None:
        return UriPattern(resource.uri_template).match
    return lambda uri: {} if uri == resource.uri else None


def _rendered(template: Template, message: Message, body: dict[str, Any]) -> str:
    scope = message.scoped()
    scope.body = body
    try:
        return template.render(scope)
    except ExpressionError as error:
        raise RpcError(INTERNAL, mask_text(str(error))) from error
