"""Where a request is too long for the model, the older half of the conversation is left out."""

import wire

payload = wire.body()
system, question = payload["messages"]
talk = [{"role": role, "content": f"Note {number} of the talk so far."} for number in range(6) for role in ("user", "assistant")]
while True:
    payload["messages"] = [system, *talk, question]
    reply = wire.post(payload)
    if reply.status != 400 or not talk:
        break
    talk = talk[len(talk) // 2 + 1 :]
print(reply.message["content"])
