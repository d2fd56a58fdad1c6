"""An agent of the tests in Python's official SDK, whichever is installed: what `script.py` says, over JSON-RPC at `/`.

    server.py PUBLIC_PORT      the port that the card names; prints its own

SDK 1 speaks 1.0, and 0.3 to those that know no other; SDK 0.3 speaks 0.3.
"""

import asyncio
import socket
import sys
from typing import Any

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, Task, TaskState, TaskStatus
from script import CARD, SKILL, events

URL = f"http://127.0.0.1:{sys.argv[1]}"

try:
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.types import AgentInterface
    from google.protobuf.json_format import MessageToDict, ParseDict
    from starlette.applications import Starlette

    def part(content: Any) -> Part:
        return ParseDict({"data": content}, Part()) if isinstance(content, dict) else Part(text=content)

    def state(name: str) -> Any:
        return TaskState.Value(f"TASK_STATE_{name.upper()}")

    def data(message: Any) -> Any:
        return next((MessageToDict(part.data) for part in message.parts if part.HasField("data")), None)

    def application(executor: AgentExecutor) -> Any:
        interfaces = [AgentInterface(url=f"{URL}/", protocol_binding="JSONRPC", protocol_version=version) for version in ("1.0", "0.3")]
        card = AgentCard(supported_interfaces=interfaces, **SHARED)
        handler = DefaultRequestHandler(executor, InMemoryTaskStore(), card)
        return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)])

except ImportError:
    from a2a.server.apps import A2AStarletteApplication
    from a2a.types import DataPart, TextPart

    def part(content: Any) -> Part:
        return Part(root=DataPart(data=content) if isinstance(content, dict) else TextPart(text=content))

    def state(name: str) -> Any:
        return TaskState[name]

    def data(message: Any) -> Any:
        return next((part.root.data for part in message.parts if part.root.kind == "data"), None)

    def application(executor: AgentExecutor) -> Any:
        card = AgentCard(url=f"{URL}/", preferred_transport="JSONRPC", protocol_version="0.3.0", **SHARED)
        return A2AStarletteApplication(card, DefaultRequestHandler(executor, InMemoryTaskStore())).build()


OLD = not hasattr(TaskState, "Value")
SHARED = CARD | {
    "capabilities": AgentCapabilities(streaming=True),
    "default_input_modes": ["text/plain", "application/json"],
    "default_output_modes": ["text/plain", "application/json"],
    "skills": [AgentSkill(**SKILL)],
}


class Executor(AgentExecutor):
    async def execute(self, context: Any, queue: Any) -> None:
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        for what, *told in events(context.get_user_input(), data(context.message), context.current_task is not None):
            # Others come to word between two events, as with an agent that works.
            await asyncio.sleep(0.01)
            if what == "message":
                await queue.enqueue_event(updater.new_agent_message([part(content) for content in told[0]]))
            elif what == "task":
                status = TaskStatus(state=state("submitted"))
                task = Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])
                await queue.enqueue_event(task)
            elif what == "status":
                await updater.update_status(state(told[0]), updater.new_agent_message([part(told[1])]) if told[1] else None, **final(told[0]))
            elif what == "artifact":
                name, parts, append, last = told
                contents = [part(content) for content in parts]
                await updater.add_artifact(contents, artifact_id=name, name=name, append=append, last_chunk=last)
            elif what == "error":
                raise RuntimeError(told[0])
            elif not await waited() and OLD:
                # In 0.3 the stream of a task ends by what its own agent says.
                await updater.cancel()

    async def cancel(self, context: Any, queue: Any) -> None:
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


async def waited() -> bool:
    """Whether the time passed and nobody cancelled."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        if not OLD:
            raise
        return False
    return True


def final(name: str) -> dict[str, bool]:
    """0.3 says in a field that nothing follows; for ends of a task its SDK sets it itself."""
    return {"final": True} if OLD and name == "input_required" else {}


async def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(listener.getsockname()[1], flush=True)
    options = uvicorn.Config(application(Executor()), log_level="warning", timeout_graceful_shutdown=1)
    await uvicorn.Server(options).serve(sockets=[listener])


asyncio.run(main())
