"""An answer as Python names, and whether what its tests import is here."""
import re
import sys
import textwrap
from importlib.util import find_spec


def text(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def end_if_missing(tests):
    """Ends with code 3, which says that nobody can tell, if the tests import what is not installed here."""
    imported = sorted(set(re.findall(r"(?m)^(?:import|from)[ ]+([A-Za-z_]\w*)", tests)))
    missing = [name for name in imported if find_spec(name) is None]
    if missing:
        print("the tests need Python's " + ", ".join(missing) + ", which is not installed here")
        sys.exit(3)


def body(answer):
    """The answer as the body of a function: its first line may have lost its blanks, or all of them."""
    later = [line for line in answer.splitlines()[1:] if line.strip()]
    if answer[:1].isspace():
        return answer
    return "    " + answer if later and all(line[:1].isspace() for line in later) else textwrap.indent(answer, "    ")


def load(entry="", prompt=""):
    """What the answer defines: the whole function, or, behind a prompt, its body alone."""
    names = {"__name__": "solution"}
    answer = text("solution.py")
    if prompt and "def " + entry + "(" in answer:
        exec(compile(prompt.rstrip() + "\n    pass\n", "prompt", "exec"), names)
    elif prompt:
        answer = prompt + body(answer)
    exec(compile(answer, "solution", "exec"), names)
    return names
