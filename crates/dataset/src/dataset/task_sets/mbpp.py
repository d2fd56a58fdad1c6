"""Assertions about an answer: exit code 0 says that they hold, 1 that they do not, 3 that nobody can tell."""
import sys

from answer import end_if_missing, load, text

tests = text("test.txt")
end_if_missing(tests)
try:
    names = load()
    exec(compile(tests, "test", "exec"), names)
except BaseException as error:
    print(repr(error))
    sys.exit(1)
