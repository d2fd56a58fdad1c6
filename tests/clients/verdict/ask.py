"""openai-python as programs use it: one question, asked in a way that the first argument names.

    whole | streamed   the SDK as it comes; an error ends the program
    hasty              no retries by the SDK, a loop without a pause instead
    stubborn           the same, whatever the error, and many times; then it ends well
    careful            an error is caught, and the program ends well without an answer
    quoting            streamed; what came is given to a second call
    checking           streamed; asked again if no finish reason came
    pressing           no retries by the SDK, a server's error is met by asking again at once
    sulking            an error is caught, and the program does nothing more, for ever
    impatient          streamed, with a time limit of two seconds a read
"""

import sys
import time

import openai

QUESTION = "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?"
SYSTEM = "You solve word problems. End with a line `ANSWER: <number>`."


def options(question=QUESTION):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    return {"model": "gpt-4o-mini", "messages": messages}


def whole(sdk):
    return sdk.chat.completions.create(**options()).choices[0].message.content


def streamed(sdk, question=QUESTION):
    """The text, and why it ended."""
    said, finish = [], None
    for chunk in sdk.chat.completions.create(**options(question), stream=True):
        for choice in chunk.choices:
            said.append(choice.delta.content or "")
            finish = choice.finish_reason or finish
    return "".join(said), finish


def looped(times, caught):
    sdk = openai.OpenAI(max_retries=0)
    for _ in range(times):
        try:
            return whole(sdk)
        except caught:
            pass
    return "no answer"


def careful():
    try:
        return whole(openai.OpenAI())
    except openai.APIError as error:
        return f"no answer: {error.__class__.__name__}"


def sulking():
    try:
        return whole(openai.OpenAI())
    except openai.APIError:
        time.sleep(10_000)


def quoting():
    said, _ = streamed(openai.OpenAI())
    return streamed(openai.OpenAI(), f"A colleague wrote: {said}\nIs that right?")[0]


def checking():
    for _ in range(3):
        said, finish = streamed(openai.OpenAI())
        if finish:
            return said
    return "no answer"


def impatient():
    sdk = openai.OpenAI(timeout=2)
    for _ in range(3):
        try:
            return streamed(sdk)[0]
        except openai.APIError:
            pass
    return "no answer"


WAYS = {
    "whole": lambda: whole(openai.OpenAI()),
    "streamed": lambda: streamed(openai.OpenAI())[0],
    "hasty": lambda: looped(5, openai.RateLimitError),
    "stubborn": lambda: looped(12, openai.APIError),
    "pressing": lambda: looped(3, openai.InternalServerError),
    "careful": careful,
    "sulking": sulking,
    "quoting": quoting,
    "checking": checking,
    "impatient": impatient,
}

if __name__ == "__main__":
    print(WAYS[sys.argv[1]]())
