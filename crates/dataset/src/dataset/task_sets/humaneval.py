"""Unit tests of an answer: exit code 0 says that it passes, 1 that it does not."""
import sys
import textwrap


def text(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def body(answer):
    """The answer as the body of a function: its first line may have lost its blanks, or all of them."""
    later = [line for line in answer.splitlines()[1:] if line.strip()]
    if answer[:1].isspace():
        return answer
    return "    " + answer if later and all(line[:1].isspace() for line in later) else textwrap.indent(answer, "    ")


prompt, answer = text("prompt.txt"), text("solution.py")
names = {"__name__": "solution"}
try:
    if "def ENTRY_POINT(" in answer:
        exec(compile(prompt.rstrip() + "\n    pass\n", "prompt", "exec"), names)
        exec(compile(answer, "solution", "exec"), names)
    else:
        exec(compile(prompt + body(answer), "solution", "exec"), names)
    exec(compile(text("test.txt"), "test", "exec"), names)
    names["check"](names["ENTRY_POINT"])
except BaseException as error:
    print(repr(error))
    sys.exit(1)
