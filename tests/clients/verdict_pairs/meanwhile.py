"""Does other work while it waits as told, then asks again."""

import time

import wire

reply = wire.post(wire.body())
if reply.refused:
    free = time.monotonic() + reply.told + 0.05
    print(wire.post(wire.body("A shelf holds 9 books. How many books do 4 shelves hold?")).message["content"])
    time.sleep(max(0, free - time.monotonic()))
    reply = wire.post(wire.body())
print(reply.message["content"])
