"""The raw clients' HTTP: chat completions by the standard library, a connection a request, no retries of its own."""

import http.client
import json
import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

QUESTION = "A box holds 6 eggs. How many eggs do 7 boxes hold?"
SYSTEM = "You solve word problems. End with a line `ANSWER: <number>`."


@dataclass
class Reply:
    """What came of one request."""

    status: int
    headers: dict
    text: str

    @property
    def refused(self):
        return self.status != 200

    @property
    def told(self):
        """Seconds that a refusal says to wait."""
        return float(self.headers.get("retry-after", 0.5))

    @property
    def message(self):
        return json.loads(self.text)["choices"][0]["message"]

    @property
    def half(self):
        """The answer as far as it came, whether the JSON is whole or not."""
        return re.search(r'"content": ?"([^"]*)', self.text)[1]


def body(question=QUESTION, **more):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    return {"model": "gpt-4o-mini", "messages": messages} | more


def opened(payload, timeout=None, key="key-1"):
    """A request is sent; gives the response, its body unread. Times out as a whole connection does, a read at a time."""
    base = urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=timeout)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    connection.request("POST", f"{base.path.rstrip('/')}/chat/completions", json.dumps(payload), headers)
    return connection.getresponse()


def post(payload, timeout=None, key="key-1"):
    """A request and its whole reply. A connection that breaks within it raises."""
    response = opened(payload, timeout, key)
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, response.read().decode())


def frames(payload):
    """The data of a stream's frames, one by one."""
    response = opened(payload | {"stream": True})
    if response.status != 200:
        raise RuntimeError(f"refused: {response.status}")
    pending = b""
    # Read in pieces: `readline` takes a broken connection for the end.
    while piece := response.read1():
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                yield line[6:].decode().strip()
    if response.length:
        raise http.client.IncompleteRead(pending, response.length)
