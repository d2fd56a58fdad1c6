"""A key that is refused.

    renews    asks for a new one, and asks again with that
    same      asks again with the same, three times
"""

import sys
import time

import wire

reply = wire.post(wire.body())
for number in range(3):
    if reply.status != 401:
        break
    time.sleep(0.3)
    reply = wire.post(wire.body(), key="key-2" if sys.argv[1] == "renews" else "key-1")
print("no answer" if reply.refused else reply.message["content"])
