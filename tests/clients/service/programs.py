"""Programs on the OpenAI SDK as it comes, a process each: two agents in turn, one streamed, one whole, over a growing conversation.

    programs.py FOLDER      settings.json of the folder names the programs; they go on until the file `end` is there

A program knows nothing of restarts. Of its own it does one thing: it asks again if a stream broke off.
"""

import json
import os
import sys
import traceback
from pathlib import Path

from openai import APIConnectionError, OpenAI

AGENTS = ("planner", "solver")
TRIES = 3


def main(folder: Path) -> int:
    settings = json.loads((folder / "settings.json").read_text())
    children = [begun(folder, program) for program in settings["programs"]]
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def begun(folder: Path, program: dict) -> int:
    """A process of its own, which shares nothing but what is imported."""
    child = os.fork()
    if child:
        return child
    code = 1
    with open(folder / f"{program['run']}.jsonl", "w", buffering=1) as out:
        try:
            work(folder, program, out)
            code = 0
        except BaseException:
            print(json.dumps({"ended": traceback.format_exc()}), file=out)
        finally:
            out.flush()
            os._exit(code)


def work(folder: Path, program: dict, out) -> None:
    client = OpenAI(base_url=program["base_url"], api_key="none", default_headers=program["headers"])
    messages: list = []
    number = 0
    while not (folder / "end").exists():
        agent = AGENTS[number % 2]
        system = {"role": "system", "content": f"You are the {agent} of {program['run']}."}
        messages.append({"role": "user", "content": f"{program['run']} call {number:03}"})
        text, broken = asked(client, [system, *messages], agent, streamed=number % 2 == 0)
        messages.append({"role": "assistant", "content": text})
        print(json.dumps({"asked": messages[-2]["content"], "text": text, "broken": broken}), file=out)
        number += 1


def asked(client: OpenAI, messages: list, agent: str, streamed: bool) -> tuple[str, int]:
    """The answer, and how many streams broke off before it."""
    call = {"model": "m", "messages": messages, "extra_headers": {"x-aegis-agent": agent}}
    if not streamed:
        return client.chat.completions.create(**call).choices[0].message.content or "", 0
    for broken in range(TRIES):
        stream = client.chat.completions.create(**call, stream=True)
        try:
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices), broken
        except APIConnectionError:
            if broken + 1 == TRIES:
                raise
    raise AssertionError


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
