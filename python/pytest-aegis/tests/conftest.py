"""What the tests of the plugin share: a pytest of its own around a file that asks a model."""

import pytest

# openai-python asks twice more after an error, and waits as it is told. The loop does not wait. It counts its tries as the SDK
# does: without that nothing tells them from other calls that ask the same.
ASKS = """
import json, openai, os, pytest, urllib.error, urllib.request

MESSAGES = [{"role": "system", "content": "You solve word problems. End with a line `ANSWER: <number>`."},
            {"role": "user", "content": "A box holds 6 eggs. How many eggs do 7 boxes hold?"}]

def answer(**options):
    said = openai.OpenAI(**options).chat.completions.create(model="gpt-4o-mini", messages=MESSAGES)
    return said.choices[0].message.content

def hasty():
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    body = json.dumps({"model": "gpt-4o-mini", "messages": MESSAGES}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    for number in range(9):
        headers["x-stainless-retry-count"] = str(number)
        try:
            said = urllib.request.urlopen(urllib.request.Request(url, body, headers))
            return json.load(said)["choices"][0]["message"]["content"]
        except urllib.error.HTTPError:
            pass
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest in a process of its own, on a file that begins as above."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "AEGIS_UPSTREAM"):
        monkeypatch.delenv(name, raising=False)
    # Python takes a compiled file for current by its size and the second of its writing. Two files of one test may share both.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    pytester.makeini("[pytest]\naegis_upstream = simulator\n")

    def run(body, *options):
        pytester.makepyfile(test_it=ASKS + body)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)

    return run
