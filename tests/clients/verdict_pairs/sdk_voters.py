"""Several voters on openai-python, one question.

    sdk_voters.py MANY at-once|in-turn [--retries N] [--different]

One that gets no answer abstains. `--different`: each has a question of its own.
"""

import argparse
import asyncio

import openai

QUESTION = "A box holds 6 eggs. How many eggs do {} boxes hold?"


async def vote(sdk, boxes):
    messages = [{"role": "user", "content": QUESTION.format(boxes)}]
    try:
        reply = await sdk.chat.completions.create(model="gpt-4o-mini", messages=messages)
    except openai.APIError:
        return None
    return reply.choices[0].message.content.split()[-1]


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("many", type=int)
    parser.add_argument("start", choices=["at-once", "in-turn"])
    parser.add_argument("--retries", type=int, default=2)
    parser.add_argument("--different", action="store_true")
    options = parser.parse_args()
    sdk = openai.AsyncOpenAI(max_retries=options.retries)
    voters = [vote(sdk, 7 + number if options.different else 7) for number in range(options.many)]
    if options.start == "at-once":
        votes = await asyncio.gather(*voters)
    else:
        votes = [await voter for voter in voters]
    print("votes:", votes)


asyncio.run(main())
