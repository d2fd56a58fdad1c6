"""An answer beside the reference, input by input: exit code 0 says that both give the same, 1 that they do not, 3 that
nobody can tell, because the reference fails here."""
import copy
import json
import sys

from answer import load, text

ENTRY, MARGIN = "ENTRY_POINT", TOLERANCE
# The set's authors compare these results without order.
UNORDERED = {
    "similar_elements",
    "find_char_long",
    "common_in_nested_lists",
    "extract_singly",
    "larg_nnum",
    "intersection_array",
    "find_dissimilar",
    "Diff",
}


def are_floats(value):
    several = isinstance(value, (list, tuple)) and len(value) > 0
    return isinstance(value, float) or several and all(isinstance(one, float) for one in value)


def near(got, expected, margin):
    if isinstance(expected, (list, tuple)):
        return type(got) is type(expected) and len(got) == len(expected) and all(
            near(one, other, margin) for one, other in zip(got, expected))
    return abs(got - expected) <= margin + 1e-7 * abs(expected)


def same(got, expected, arguments):
    if ENTRY == "find_zero":
        return abs(sum(factor * got**power for power, factor in enumerate(arguments[0]))) <= MARGIN
    if ENTRY in UNORDERED:
        return set(got) == set(expected)
    if got == expected:
        return True
    margin = MARGIN or (1e-6 if are_floats(expected) else 0)
    return margin > 0 and type(got) is type(expected) and near(got, expected, margin)


try:
    reference = {"__name__": "reference"}
    exec(compile(text("reference.txt"), "reference", "exec"), reference)
    inputs = json.loads(text("inputs.json"))
    expected = [reference[ENTRY](*copy.deepcopy(arguments)) for arguments in inputs]
except BaseException as error:
    print("the reference fails here: " + repr(error))
    sys.exit(3)
try:
    function = load(ENTRY, text("prompt.txt"))[ENTRY]
    for arguments, result in zip(inputs, expected):
        got = function(*copy.deepcopy(arguments))
        assert same(got, result, arguments), f"{arguments} gives {got}, not {result}"
except BaseException as error:
    print(repr(error))
    sys.exit(1)
