"""A small dataset of our own format: clean runs and failures, tool calls among their steps."""

AGENTS = ["planner", "solver", "critic"]


def clean(number):
    """A clean run of four steps."""
    return {
        "format": 1,
        "id": f"c{number:04}",
        "kind": "clean",
        "system": "pipeline",
        "backend": "simulator",
        "task": {"id": f"t{number}", "question": f"what is {number} + {number}", "answer": str(2 * number)},
        "split": "test" if number % 3 == 0 else "train",
        "outcome": "success",
        "final_answer": str(2 * number),
        "tools": [{"name": "add", "description": "adds", "parameters": {"type": "object", "properties": {}}}],
        "steps": [step(place, number, 2 * number) for place in range(4)],
        "label": None,
        "clean_twin": None,
    }


def failure(number):
    """The same run with a wrong number from step 1 on."""
    sample = clean(number)
    sample |= {"id": f"f{number:04}", "kind": "failure", "outcome": "failure", "clean_twin": f"c{number:04}"}
    sample["final_answer"] = str(2 * number + 1)
    sample["steps"] = [step(place, number, 2 * number + (place > 0)) for place in range(4)]
    mode = {"code": "FM-2.6", "name": "reasoning-action mismatch", "taxonomy": "MAST-2503.13657v2"}
    error = {"agent": "solver", "step": 1, "call": 0, "side": "response", "operator": "corrupt_number"}
    sample["label"] = {
        "status": "verified",
        "definition": "injected",
        "seed": 7,
        "outcome": "failure",
        "errors": [error | {"failure_mode": mode, "mode_claim": {"state": "applicable"}}],
        "evidence": {
            "clean": {"passed": 2, "of": 2},
            "executed": {
                "perturbed": True,
                "null": {"passed": 6, "failed": 0},
                "treated": {"passed": 0, "failed": 6},
                "pairs": 6,
                "e": 1792.0,
                "target": 1000.0,
            },
        },
    }
    return sample


def step(place, number, value):
    """One step; the solver's first calls a tool, and its second has the result."""
    agent = AGENTS[place % 3]
    output = {"role": "assistant", "text": f"{agent} says {value} in step {place}"}
    messages = [{"role": "system", "text": f"you are the {agent}"}, {"role": "user", "text": f"{number} + {number}?"}]
    if place == 1:
        output["calls"] = [{"id": f"call-{number}", "name": "add", "arguments": f'{{"of": {number}}}'}]
    if place == 2:
        messages.append({"role": "tool", "text": str(value), "answers": f"call-{number}"})
    return {
        "step": place,
        "call": place // 3,
        "turn": place,
        "agent": agent,
        "model": "sim",
        "input": {"messages": messages},
        "tools": ["add"] if place == 1 else [],
        "output": output,
        "finish_reason": "tool_calls" if place == 1 else "stop",
    }
