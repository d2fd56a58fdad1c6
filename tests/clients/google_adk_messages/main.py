"""Google ADK on Anthropic Messages: a solver with a tool, streamed, then a reviewer, one after the other."""

import asyncio
import re
import sys

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

PROBLEM = "A depot stores 18 racks with 26 tyres each. 75 tyres are sent out. How many tyres remain?"


def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression such as 3 * (4 + 5)."""
    if not re.fullmatch(r"[\d\s.+*/()-]+", expression):
        return f"error: `{expression}` is not arithmetic"
    return str(eval(expression))


model = AnthropicLlm(model="claude-sonnet-4-5")
solver = LlmAgent(
    name="solver",
    model=model,
    instruction="You solve word problems. Compute with the calculator and end with a line `ANSWER: <number>`.",
    tools=[calculator],
)
reviewer = LlmAgent(
    name="reviewer",
    model=model,
    instruction="You verify the solution of a word problem. Say whether it is correct or incorrect.",
)


async def main(problem: str) -> None:
    runner = InMemoryRunner(agent=SequentialAgent(name="team", sub_agents=[solver, reviewer]), app_name="team")
    session = await runner.session_service.create_session(app_name="team", user_id="user")
    message = types.Content(role="user", parts=[types.Part(text=problem)])
    said = {}
    streamed = RunConfig(streaming_mode=StreamingMode.SSE)
    async for event in runner.run_async(
        user_id="user", session_id=session.id, new_message=message, run_config=streamed
    ):
        parts = event.content.parts or [] if event.content else []
        text = "".join(part.text or "" for part in parts)
        if event.is_final_response() and text:
            said[event.author] = text
    for author, text in said.items():
        print(f"{author}:", text)
    numbers = re.findall(r"-?\d+(?:\.\d+)?", said.get("solver", "").replace(",", ""))
    print("FINAL:", numbers[-1] if numbers else "none")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
