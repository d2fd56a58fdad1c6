"""Four agents answer a shop order: intake reads it, pricer prices it by tools, auditor sends it back or lets it pass, writer answers.

An ordinary program on the official `openai` SDK; it reads OPENAI_BASE_URL as the SDK does and knows nothing of Aegis.
"""

import json
import os
import sys

from openai import OpenAI

MODEL = "gpt-4o-mini"
REVISIONS = 2
PRICES = {"notebook": 4, "stapler": 9, "pen": 2, "folder": 3, "eraser": 1, "ruler": 5, "lamp": 24, "binder": 6}
PROMPTS = {
    "intake": "You are intake, the clerk of a stationery shop who reads orders. Write in plain prose which items the customer wants "
    "and how many of each, in figures, and what delivery costs where the order says so. Leave out what the customer takes back.",
    "pricer": "You are pricer, who works out what an order costs. Use lookup_price for each item and multiply for each subtotal. "
    "Then write a line for each item, `item: count pieces, subtotal`, and as the last line `Sum: <number>`.",
    "auditor": "You are auditor, who checks the pricing of an order against its item list: the counts, the delivery, the sum. "
    "Show what you compared. The last line begins with APPROVE, which ends the audit and names the total, or with REVISE and the "
    "reasons, which sends the pricing back.",
    "writer": "You are writer, who answers the customer. Say in a sentence what the order comes to, by the last line of the audit, "
    "and close with a line `TOTAL: <number>`.",
}


def tool(name, about, **parameters):
    """A tool as the API wants it described."""
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}


TOOLS = [
    tool("lookup_price", "The price of one piece of an item.", item="string"),
    tool("multiply", "The product of two numbers.", a="number", b="number"),
]


def execute(call):
    """What a tool call comes to, as text."""
    arguments = json.loads(call.function.arguments)
    if call.function.name == "lookup_price":
        item = str(arguments["item"]).lower().strip()
        return str(PRICES.get(item, PRICES.get(item.removesuffix("s"), f"no item is called {item}")))
    return str(arguments["a"] * arguments["b"])


class Agent:
    """One agent with a conversation of its own."""

    def __init__(self, client, name, tools=None):
        self.client, self.name = client, name
        self.options = {"tools": tools} if tools else {}
        self.messages = [{"role": "system", "content": PROMPTS[name]}]

    def say(self, text):
        """Put `text` to the agent, run the tools that it calls, and give its words."""
        self.messages.append({"role": "user", "content": text})
        while True:
            reply = self.client.chat.completions.create(model=MODEL, temperature=0, messages=self.messages, **self.options)
            message = reply.choices[0].message
            self.messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            if not message.tool_calls:
                print(f"{self.name}: {message.content}")
                return message.content or ""
            for call in message.tool_calls:
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": execute(call)})


def main(order):
    client = OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"), max_retries=0)
    intake, auditor, writer = (Agent(client, name) for name in ("intake", "auditor", "writer"))
    pricer = Agent(client, "pricer", TOOLS)
    listed = intake.say(order)
    priced = pricer.say(f"Item list: {listed}")
    for revision in range(REVISIONS + 1):
        audit = auditor.say(f"Item list: {listed}\n\nPricing:\n{priced}")
        if revision == REVISIONS or not any(line.strip().startswith("REVISE") for line in audit.splitlines()):
            break
        priced = pricer.say(f"The auditor sends the pricing back:\n{audit}\n\nWork the subtotals out again.")
    print(writer.say(f"Order: {order}\n\nPricing:\n{priced}\n\nAudit:\n{audit}"))


if __name__ == "__main__":
    main(sys.argv[1])
