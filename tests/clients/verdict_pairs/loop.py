"""Asks each of its questions until it is answered.

    loop.py [--pause told|SECONDS] [--tries N] [--change WHAT] [--end HOW] [--questions N]

`--tries 0` asks for ever. What changes from try to try: nothing, a time stamp in the prompt, a request id in `metadata`,
the temperature, or a random word. The end without an answer: a polite line, an error code, an exception, or a bug of
the program's own after it has given up.
"""

import argparse
import itertools
import sys
import time
import uuid
from datetime import datetime

import wire


def payload(question, change, tries):
    if change == "time":
        return wire.body(f"It is {datetime.now().isoformat()}. {question}")
    if change == "nonce":
        return wire.body(f"{question} ({uuid.uuid4()})")
    if change == "id":
        return wire.body(question, metadata={"request_id": str(uuid.uuid4())})
    if change == "temperature":
        return wire.body(question, temperature=round(0.2 + 0.1 * tries, 1))
    return wire.body(question)


def asked(question, options):
    """The answer, or `None` after the last try."""
    for tries in range(options.tries) if options.tries else itertools.count():
        reply = wire.post(payload(question, options.change, tries))
        if not reply.refused:
            return reply.message["content"]
        if options.end == "raise":
            raise RuntimeError(f"refused: {reply.status}")
        if tries + 1 != options.tries:
            time.sleep(reply.told if options.pause == "told" else float(options.pause))
    return None


def ended(how):
    """What becomes of the program without an answer."""
    if how == "code":
        sys.exit("no answer: the service is overloaded")
    if how == "bug":
        print("no answer; the summary is made without it")
        print({}["summary"])
    print("no answer")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pause", default="told")
    parser.add_argument("--tries", type=int, default=4)
    parser.add_argument("--change", choices=["time", "id", "temperature", "nonce"])
    parser.add_argument("--end", choices=["polite", "code", "raise", "bug"], default="polite")
    parser.add_argument("--questions", type=int, default=1)
    options = parser.parse_args()
    for number in range(options.questions):
        question = wire.QUESTION if options.questions == 1 else f"{wire.QUESTION} And {number + 8} boxes?"
        answer = asked(question, options)
        print(answer) if answer else ended(options.end)


if __name__ == "__main__":
    main()
