"""An agent that puts each error into its history and asks on, for ever."""

import time

import wire

payload = wire.body()
while True:
    reply = wire.post(payload)
    if not reply.refused:
        print(reply.message["content"])
        break
    payload["messages"].append({"role": "user", "content": f"The last call failed with {reply.status}. Go on."})
    time.sleep(0.7)
