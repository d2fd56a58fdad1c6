"""Several workers ask the same question, as voters do.

    workers.py MANY at-once|in-turn|SECONDS [--waits]       SECONDS: how long after one another they start

Each asks once; with `--waits` one that is refused asks again, once, when it was told to.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

import wire


def vote(waits):
    reply = wire.post(wire.body())
    if reply.refused and waits:
        time.sleep(reply.told + 0.05)
        reply = wire.post(wire.body())
    return None if reply.refused else reply.message["content"].split()[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("many", type=int)
    parser.add_argument("start")
    parser.add_argument("--waits", action="store_true")
    options = parser.parse_args()
    if options.start == "in-turn":
        votes = [vote(options.waits) for _ in range(options.many)]
    else:
        with ThreadPoolExecutor(options.many) as pool:
            begun = []
            for _ in range(options.many):
                begun.append(pool.submit(vote, options.waits))
                time.sleep(0 if options.start == "at-once" else float(options.start))
            votes = [one.result() for one in begun]
    print("votes:", votes)


if __name__ == "__main__":
    main()
