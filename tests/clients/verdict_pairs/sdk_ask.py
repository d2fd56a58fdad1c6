"""One program on openai-python, a question after another.

    sdk_ask.py plain N        N different questions, the SDK as it comes
    sdk_ask.py timed          a limit of two seconds a try
    sdk_ask.py fallback       the same without retries; another model is asked when the limit is over
    sdk_ask.py takes          takes the answer whatever it is
"""

import sys
import time

import openai

QUESTION = "A box holds 6 eggs. How many eggs do {} boxes hold?"


def ask(sdk, boxes=7, model="gpt-4o-mini"):
    messages = [{"role": "user", "content": QUESTION.format(boxes)}]
    return sdk.chat.completions.create(model=model, messages=messages).choices[0].message.content


def fallback():
    sdk = openai.OpenAI(timeout=2, max_retries=0)
    try:
        return ask(sdk)
    except openai.APIError:
        # So long that the end of the first connection is seen before: the two calls do not overlap.
        time.sleep(0.3)
        return ask(sdk, model="gpt-4.1-nano")


WAYS = {
    "plain": lambda: [ask(openai.OpenAI(), 7 + number) for number in range(int(sys.argv[2]))],
    "timed": lambda: ask(openai.OpenAI(timeout=2)),
    "fallback": fallback,
    "takes": lambda: f"The model says: {ask(openai.OpenAI())}",
}

if __name__ == "__main__":
    print(WAYS[sys.argv[1]]())
