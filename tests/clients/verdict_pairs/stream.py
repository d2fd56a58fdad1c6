"""Reads a streamed answer.

    swallows    never looks how it ended; what came is the answer, even where the connection broke
    checks      asks again, after a pause, until a finish reason came
    says        says that the answer is not whole, and ends well
    falls       lets the error of a broken connection end it
"""

import http.client
import json
import sys
import time

import wire


def read(said):
    """The finish reason, or `None`; what comes is put into `said`."""
    finish = None
    for data in wire.frames(wire.body()):
        if data == "[DONE]":
            break
        choice = json.loads(data)["choices"][0]
        said.append(choice["delta"].get("content") or "")
        finish = choice["finish_reason"] or finish
    return finish


def caught(said):
    try:
        return read(said)
    except (http.client.HTTPException, OSError):
        return None


def checks():
    for _ in range(3):
        if caught(said := []):
            return "".join(said)
        time.sleep(0.5)
    return "no whole answer"


def says():
    whole = caught(said := [])
    return "".join(said) if whole else "The answer was cut short, so it is not shown."


def swallows():
    caught(said := [])
    return "".join(said)


def falls():
    read(said := [])
    return "".join(said)


if __name__ == "__main__":
    print({"swallows": swallows, "checks": checks, "says": says, "falls": falls}[sys.argv[1]]())
