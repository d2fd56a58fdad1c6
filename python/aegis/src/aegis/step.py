"""A step of a run: one call of an agent, with its attempts."""

from __future__ import annotations

from typing import Any, Optional

from .bodies import Body, Library
from .messages import model_of, request_messages, response_messages
from .words import Message


class Attempt:
    """One try of a call: a request and what came of it. Times are in µs since the request arrived."""

    def __init__(self, record: dict[str, Any], body: Optional[Body], library: Library) -> None:
        self._library = library
        self._request = body.hash if body else None
        self._reply: Optional[str] = None
        self._delivered: Optional[str] = None
        self._fuller: Optional[str] = None
        self.number: int = record["attempt"]
        """0 for the first."""
        self.at: str = record["at"]
        """When the request arrived, RFC 3339 UTC."""
        self.at_us: int = record["t_us"]
        """The same, in µs since the recording began."""
        self.request_headers: list[tuple[str, str]] = _pairs(record)
        self.reply_headers: list[tuple[str, str]] = []
        self.cause: Optional[str] = None
        """How it ended: `complete`, `client_gone`, `injected`, …; None of an exchange that never closed."""
        self.origin = "live"
        """Where the reply came from: `live`, `recorded`, `altered_again`, `replaced`, `remade`."""
        self.status: Optional[int] = None
        self.proxy_error: Optional[dict[str, str]] = None
        """What Aegis itself answered, where no reply came: `code` and `message`."""
        self.usage: Optional[dict[str, int]] = None
        """Tokens as the upstream counted them: `input` and `output`."""
        self.finish_reason: Optional[str] = None
        self.first_byte_us: Optional[int] = None
        self.last_byte_us: Optional[int] = None
        self.streamed = False
        self.exact = body is None or body.exact
        """Whether its bytes are those that passed: nothing was masked, cut or left out."""
        self.frames: list[tuple[int, int]] = []
        """Of an event stream, each event's arrival and length in bytes."""

    def close(self, record: dict[str, Any], bodies: dict[str, Optional[Body]]) -> None:
        """Take in the record of its end."""
        self.cause, self.origin = record["cause"], record.get("origin", "live")
        self.status, self.usage = record.get("status"), record.get("usage")
        self.finish_reason, self.proxy_error = record.get("finish_reason"), record.get("proxy_error")
        self.first_byte_us, self.last_byte_us = record.get("first_byte_us"), record.get("last_byte_us")
        self.streamed, self.reply_headers = record.get("streamed", False), _pairs(record)
        self.exact &= not record.get("truncated") and all(body.exact for body in bodies.values() if body)
        if bodies["request"]:
            self._request = bodies["request"].hash
        reply = bodies["reply"]
        self._reply, self.frames = (reply.hash, list(reply.frames)) if reply else (None, [])
        self._delivered = bodies["delivered"].hash if bodies["delivered"] else None
        self._fuller = bodies["fuller"].hash if bodies["fuller"] else None

    @property
    def request(self) -> bytes:
        """The request's body as the agent sent it."""
        return self._read(self._request) or b""

    @property
    def reply(self) -> bytes:
        """The reply's body as the upstream sent it."""
        return self._read(self._reply) or b""

    @property
    def delivered(self) -> Optional[bytes]:
        """The body that the agent got, where it is not the upstream's."""
        return self._read(self._delivered)

    @property
    def reply_with_logprobs(self) -> Optional[bytes]:
        """The upstream's reply with log-probabilities that only the recorder asked for."""
        return self._read(self._fuller)

    @property
    def response(self) -> bytes:
        """The body that the agent got."""
        return self.reply if self._delivered is None else self.delivered or b""

    def _read(self, name: Optional[str]) -> Optional[bytes]:
        return None if name is None else self._library.read(name)

    def __repr__(self) -> str:
        return f"<Attempt {self.number} {self.status} {self.cause}>"


class Step:
    """One call of an agent, by its place in the run. What is said of a reply is said of the last attempt's."""

    def __init__(self, record: dict[str, Any], library: Library) -> None:
        self._library = library
        self.index: int = record["step"]
        """From 0, over all agents, by arrival."""
        self.call: int = record["call"]
        """From 0, of this agent instance."""
        self.agent: str = record["agent"]
        self.instance: int = record.get("instance", 0)
        """Which of several equal agents, from 0."""
        self.source: str = record["source"]
        """The rule that named the agent: `path`, `roster`, `dialect`, …."""
        self.evidence: str = record["evidence"]
        self.confidence: float = record["confidence"]
        self.ambiguous: bool = record.get("ambiguous", False)
        self.overlapping: bool = record.get("overlapping", False)
        """Whether another call of the same agent instance was under way."""
        self.called_by: Optional[str] = record.get("called_by")
        """The agent that a tool is called for, where the request names it."""
        self.surface: str = record["surface"]
        """The API: `openai_chat`, `openai_responses`, `anthropic_messages`, …, or `opaque`."""
        self.method: str = record["method"]
        self.path: str = record["path"]
        self.attempts: list[Attempt] = []
        self.injected: list[dict[str, Any]] = []
        """The records of the injections that edited it: `operator`, `side`, `failure_mode`, `before`, `after`, …."""
        self.sent: Optional[str] = None

    @property
    def last(self) -> Attempt:
        """The attempt that the agent went on with."""
        return self.attempts[-1]

    @property
    def request(self) -> bytes:
        """The request's body as the agent sent it."""
        return self.attempts[0].request

    @property
    def request_sent(self) -> Optional[bytes]:
        """The body that went to the upstream, where an injection changed it."""
        return None if self.sent is None else self._library.read(self.sent)

    @property
    def response(self) -> bytes:
        """The reply's body as the agent got it."""
        return self.last.response

    @property
    def request_messages(self) -> list[Message]:
        """What the agent asked; empty where the API is not known."""
        return request_messages(self.surface, self.request)

    @property
    def response_messages(self) -> list[Message]:
        """What the agent was answered, streams put together; empty where the API is not known."""
        return response_messages(self.surface, self.response)

    @property
    def text(self) -> str:
        """The words of the answer."""
        return "\n".join(message.content for message in self.response_messages if message.content)

    @property
    def model(self) -> Optional[str]:
        """The model that was asked for."""
        return model_of(self.request, self.path)

    @property
    def status(self) -> Optional[int]:
        """The HTTP status that the agent got."""
        return self.last.status

    @property
    def usage(self) -> Optional[dict[str, int]]:
        """Tokens as the upstream counted them: `input` and `output`."""
        return self.last.usage

    @property
    def at(self) -> str:
        """When the first attempt arrived, RFC 3339 UTC."""
        return self.attempts[0].at

    @property
    def duration_us(self) -> Optional[int]:
        """From the arrival of the first attempt to the last byte of the last; None where it never ended."""
        end = self.last.last_byte_us
        return None if end is None else self.last.at_us + end - self.attempts[0].at_us

    def __repr__(self) -> str:
        return f"<Step {self.index} {self.agent}#{self.instance} call {self.call} {self.status}>"


def _pairs(record: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in record.get("headers", ())]
