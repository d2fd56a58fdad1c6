"""Two questions at once; a refusal of the one ends the program while the other is under way."""

import threading
import time

import wire


def other():
    # So much later that it is the first one that is refused.
    time.sleep(0.05)
    wire.post(wire.body("A shelf holds 9 books. How many books do 4 shelves hold?"))


threading.Thread(target=other, daemon=True).start()
reply = wire.post(wire.body())
time.sleep(0.15)
if reply.refused:
    raise RuntimeError(f"refused: {reply.status}")
print(reply.message["content"])
