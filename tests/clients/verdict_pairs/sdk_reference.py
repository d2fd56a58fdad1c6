"""What a good client does, on openai-python as it comes: each ready-made plan is one that it survives.

It leaves retries to the SDK. Of a stream it looks whether the end came, and asks once more after a pause where it did not. Arguments
of a tool that are wrong, and a call that never came, it tells the model.
"""

import json
import time

import openai

QUESTION = "A box holds 6 eggs. How many eggs do {} boxes hold?"
PARAMETERS = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
TOOLS = [{"type": "function", "function": {"name": "calculator", "description": "Computes.", "parameters": PARAMETERS}}]
sdk = openai.OpenAI()


def asked(boxes):
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": QUESTION.format(boxes)}]}


def streamed(boxes):
    for _ in range(3):
        said, finish = [], None
        try:
            for chunk in sdk.chat.completions.create(**asked(boxes), stream=True):
                for choice in chunk.choices:
                    said.append(choice.delta.content or "")
                    finish = choice.finish_reason or finish
        except (openai.APIError, ValueError, OSError) as error:
            # The SDK passes on what its HTTP library raises within a stream.
            print(f"the stream broke: {error}")
        except Exception as error:
            if type(error).__module__.split(".")[0] not in ("httpx", "httpcore"):
                raise
            print(f"the stream broke: {error}")
        if finish:
            return "".join(said)
        time.sleep(1)
    return "no whole answer came"


def result(call):
    try:
        return str(eval(json.loads(call.function.arguments)["expression"]))
    except (ValueError, KeyError, TypeError) as error:
        return f"error: the arguments are wrong: {error}"


def with_tools(boxes):
    request = asked(boxes) | {"tools": TOOLS}
    for _ in range(5):
        message = sdk.chat.completions.create(**request).choices[0].message
        request["messages"].append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            request["messages"].append({"role": "tool", "tool_call_id": call.id, "content": result(call)})
    return "no answer came"


for boxes in range(7, 11):
    print(sdk.chat.completions.create(**asked(boxes)).choices[0].message.content)
    print(streamed(boxes + 10))
for boxes in (21, 22):
    print(with_tools(boxes))
