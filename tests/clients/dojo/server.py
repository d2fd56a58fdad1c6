"""The tools of agentdojo's suites behind MCP, an environment for each run, and agentdojo's own checker as the judge of it.

    server.py        prints its port when it listens, ends when its input does

`POST /runs {"suite", "task"}` makes an environment and gives its name; calls of tools name it in the header `x-dojo-run`.
`POST /runs/NAME/verdict {"output"}` says whether the task's checker is content with the state and the answer.
"""

import asyncio
import importlib.util
import itertools
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import uvicorn
from mcp import types
from mcp.server.lowlevel.server import Server as MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

VERSION = "v1.2.2"


def package(name: str, *folders: str, **members: Any) -> None:
    """A package whose `__init__` is not run."""
    module = ModuleType(name)
    module.__path__ = list(folders)
    module.__dict__.update(members)
    sys.modules[name] = module


# The pipeline's `__init__` imports the SDKs of five vendors. Suites, tools and checkers need one constant of all that.
PIPELINE = "agentdojo.agent_pipeline"
package(PIPELINE, str(Path(importlib.util.find_spec("agentdojo").origin).parent / "agent_pipeline"))
package(f"{PIPELINE}.llms")
package(f"{PIPELINE}.llms.google_llm", EMPTY_FUNCTION_NAME="<empty-function-name>")

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str  # noqa: E402
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # noqa: E402
from agentdojo.task_suite.load_suites import get_suites  # noqa: E402
from agentdojo.types import text_content_block_from_string  # noqa: E402

SUITES = get_suites(VERSION)
COUNT = itertools.count()


@dataclass
class Run:
    """An environment, as it was and as it is."""

    suite: Any
    task: Any
    before: Any
    now: Any
    calls: list[FunctionCall] = field(default_factory=list)

    @classmethod
    def of(cls, suite: str, task: str) -> "Run":
        suite = SUITES[suite]
        task = suite.user_tasks[task]
        now = task.init_environment(suite.load_and_inject_default_environment({}))
        return cls(suite, task, now.model_copy(deep=True), now)

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """What the tool says, and whether that is an error."""
        self.calls.append(FunctionCall(function=tool, args=arguments))
        result, error = FunctionsRuntime(self.suite.tools).run_function(self.now, tool, arguments)
        return (error, True) if error else (tool_result_to_str(result), False)

    def useful(self, output: str) -> bool:
        said = [text_content_block_from_string(output)]
        return bool(self.suite._check_user_task_utility(self.task, said, self.before, self.now, self.calls))


RUNS: dict[str, Run] = {}


def asked(context: Any) -> Run:
    return RUNS[context.request.headers["x-dojo-run"]]


async def tools(context: Any, _params: Any) -> types.ListToolsResult:
    offered = asked(context).suite.tools
    return types.ListToolsResult(
        tools=[types.Tool(name=one.name, description=one.description, input_schema=one.parameters.model_json_schema()) for one in offered]
    )


async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text, is_error = asked(context).call(params.name, dict(params.arguments or {}))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


async def begin(request: Request) -> JSONResponse:
    wanted = await request.json()
    name = f"run-{next(COUNT)}"
    RUNS[name] = Run.of(wanted["suite"], wanted["task"])
    return JSONResponse({"run": name})


async def verdict(request: Request) -> JSONResponse:
    run = RUNS.pop(request.path_params["run"])
    return JSONResponse({"useful": run.useful((await request.json())["output"]), "calls": [one.function for one in run.calls]})


class Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


async def main() -> None:
    routes = [Route("/runs", begin, methods=["POST"]), Route("/runs/{run}/verdict", verdict, methods=["POST"])]
    app = MCPServer("dojo", on_list_tools=tools, on_call_tool=call).streamable_http_app(
        stateless_http=True, json_response=True, custom_starlette_routes=routes
    )
    server = Server(uvicorn.Config(app, "127.0.0.1", 0, log_level="error", timeout_graceful_shutdown=1))

    def until_input_ends() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=until_input_ends, daemon=True).start()
    await server.serve()


if __name__ == "__main__":
    asyncio.run(main())
