"""An agent with a calculator.

    falls      takes the arguments as they come: missing ones end it
    reports    tells the model what is missing
"""

import json
import sys

import wire

PARAMETERS = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
TOOLS = [{"type": "function", "function": {"name": "calculator", "description": "Computes.", "parameters": PARAMETERS}}]


def result(call, way):
    arguments = json.loads(call["function"]["arguments"])
    if way == "reports" and "expression" not in arguments:
        return "error: `expression` is missing"
    return str(eval(arguments["expression"]))


def main(way):
    payload = wire.body(tools=TOOLS)
    for _ in range(5):
        message = wire.post(payload).message
        payload["messages"].append(message)
        if not message.get("tool_calls"):
            return print(message["content"])
        for call in message["tool_calls"]:
            payload["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": result(call, way)})


main(sys.argv[1])
