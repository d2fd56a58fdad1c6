"""A chain of three on the OpenAI SDK, each streamed: a solver answers, a scribe writes it down, a reporter reports it."""

import sys

from openai import OpenAI

client = OpenAI(api_key="none", max_retries=2, timeout=600)
MODEL = "smollm2-135m-instruct"


def ask(prompt, text):
    """One streamed call; gives the whole reply."""
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
    stream = client.chat.completions.create(
        model=MODEL,
        messages=messages,
        max_tokens=48,
        stream=True,
        stream_options={"include_usage": True},
        **TEMPERATURE,
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def main(question):
    answer = ask("You are the solver. Answer the question in one short sentence.", question)
    print("solver:", answer)
    note = ask("You are the scribe. Repeat the message word for word.", f"Message: {answer}")
    print("scribe:", note)
    report = ask(
        "You are the reporter. Tell the reader what the note says, in one short sentence.",
        f"Note: {note}\n\nWhat does the note say?",
    )
    print("FINAL:", " ".join(report.split()))


if __name__ == "__main__":
    TEMPERATURE = {"temperature": float(sys.argv[2])}
    main(sys.argv[1])
