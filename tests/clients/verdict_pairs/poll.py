"""A poll: the same question every 0.6 seconds, three times. One that fails is a gap."""

import time

import wire

for _ in range(3):
    reply = wire.post(wire.body("Is the deployment done?"))
    print("gap" if reply.refused else reply.message["content"])
    time.sleep(0.6)
