"""Asks a second time where the first answer takes longer than most, and takes whichever comes first."""

import os
import threading

import wire

done = threading.Event()
answers = []


def ask():
    answers.append(wire.post(wire.body()).message["content"])
    done.set()


def begin():
    threading.Thread(target=ask, daemon=True).start()


begin()
if not done.wait(0.8):
    begin()
    done.wait(6)
print(answers[0] if answers else "no answer in time", flush=True)
# What is still under way is dropped with its connection.
os._exit(0)
