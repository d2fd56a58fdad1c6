"""Reads an answer in JSON.

    swallows    takes the text out of what came, whole or not
    quotes      the same, and has it checked by a second call
    checks      asks again, after a pause, where the JSON is broken
"""

import http.client
import json
import sys
import time

import wire


def swallowed():
    try:
        return wire.post(wire.body()).half
    except http.client.IncompleteRead as broken:
        return wire.Reply(200, {}, broken.partial.decode()).half


def quotes():
    return wire.post(wire.body(f"Check this result: {swallowed()}")).message["content"]


def checks():
    for _ in range(3):
        try:
            return wire.post(wire.body()).message["content"]
        except json.JSONDecodeError:
            time.sleep(0.5)
    return "no whole answer"


if __name__ == "__main__":
    print({"swallows": swallowed, "quotes": quotes, "checks": checks}[sys.argv[1]]())
