"""Meets an empty answer.

    takes    uses it as it is
    again    asks again, after a pause, three times at most
"""

import sys
import time

import wire

answer = wire.post(wire.body()).message["content"]
for _ in range(2):
    if answer or sys.argv[1] == "takes":
        break
    time.sleep(0.3)
    answer = wire.post(wire.body()).message["content"]
if not answer and sys.argv[1] == "again":
    sys.exit("no answer")
print("The model says:", answer)
