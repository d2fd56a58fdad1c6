"""A debate on OpenAI Agents: three answer, read each other and answer again; an aggregator says what most of them say."""

import asyncio
import sys

from agents import Agent, ModelSettings, Runner, set_default_openai_api

set_default_openai_api("chat_completions")

MODEL = "smollm2-135m-instruct"
DEBATERS = ("Ada", "Blaise", "Carl")


def agent(name, instructions, temperature):
    """An agent of the debate."""
    settings = ModelSettings(temperature=temperature, max_tokens=48)
    return Agent(name=name, model=MODEL, instructions=instructions, model_settings=settings)


async def main(question, temperature):
    debaters = [
        agent(name, f"You are {name}. Answer the question in one short sentence.", temperature) for name in DEBATERS
    ]
    said = {}
    for debater in debaters:
        said[debater.name] = (await Runner.run(debater, question)).final_output
    first = dict(said)
    for debater in debaters:
        others = "\n".join(f"{name} says: {text}" for name, text in first.items() if name != debater.name)
        said[debater.name] = (await Runner.run(debater, f"{others}\n\n{question}")).final_output
        print(f"{debater.name}: {said[debater.name]}")
    told = "\n".join(f"{name} says: {text}" for name, text in said.items())
    prompt = "You are the aggregator. Give the answer that most of them give, in one short sentence."
    aggregator = agent("aggregator", prompt, temperature)
    final = (await Runner.run(aggregator, f"{told}\n\nQuestion: {question}")).final_output
    print("FINAL:", " ".join(final.split()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
