"""Asks another model where the first is refused or gives nothing within a second and a half."""

import time

import wire

try:
    reply = wire.post(wire.body(), timeout=1.5)
except TimeoutError:
    reply = None
if reply is None or reply.refused:
    # So long that the end of the first connection is seen before: the two calls do not overlap.
    time.sleep(0.3)
    reply = wire.post(wire.body(model="gpt-4.1-nano"), timeout=20)
print(reply.message["content"])
