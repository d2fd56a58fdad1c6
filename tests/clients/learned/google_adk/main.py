"""Google ADK on chat completions: a solver, then two checkers at once, then a reporter; state is written into their
prompts. The model class is ADK's own for services of this API; LiteLLM is left out (see the README)."""

import asyncio
import os
import sys

from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.models.apigee_llm import ApigeeLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

PROBLEM = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"


MODEL = ApigeeLlm(
    model="apigee/openai/gpt-4o-mini",
    proxy_url=os.environ["OPENAI_BASE_URL"],
    custom_headers={"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
)


def agent(name: str, instruction: str) -> LlmAgent:
    return LlmAgent(name=name, model=MODEL, instruction=instruction, output_key=name)


async def main(problem: str) -> None:
    checkers = [
        agent("unit_checker", "You check the units of this solution:\n{solver}"),
        agent("sum_checker", "You check the sums of this solution:\n{solver}"),
    ]
    pipeline = SequentialAgent(
        name="desk",
        sub_agents=[
            agent("solver", "You solve word problems. End with a line `ANSWER: <number>`."),
            ParallelAgent(name="checks", sub_agents=checkers),
            agent("reporter", "You report the result.\nUnits: {unit_checker}\nSums: {sum_checker}"),
        ],
    )
    runner = InMemoryRunner(agent=pipeline, app_name="desk")
    session = await runner.session_service.create_session(app_name="desk", user_id="user")
    question = types.Content(role="user", parts=[types.Part(text=problem)])
    said = ""
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=question):
        if event.is_final_response() and event.content:
            said = event.content.parts[0].text
    print("FINAL:", said)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else PROBLEM))
