"""Three workers go through a queue of four questions.

    pool.py waits | puts-back       what a worker does with a question that is refused: it waits as told and asks again, three
                                    times, or puts it back at once and takes the next, until each was asked four times
"""

import queue
import sys
import threading
import time

import wire

jobs = queue.Queue()
answers = {}


def work(waits):
    while True:
        try:
            question, tries = jobs.get(timeout=2)
        except queue.Empty:
            return
        reply = wire.post(wire.body(question))
        while reply.refused and waits and tries < 3:
            time.sleep(reply.told + 0.05)
            reply, tries = wire.post(wire.body(question)), tries + 1
        if not reply.refused:
            answers[question] = reply.message["content"]
        elif not waits and tries < 3:
            jobs.put((question, tries + 1))


def main():
    for number in range(4):
        jobs.put((f"A box holds {number + 3} eggs. How many eggs do 7 boxes hold?", 0))
    workers = [threading.Thread(target=work, args=[sys.argv[1] == "waits"]) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(len(answers), "answered")


main()
