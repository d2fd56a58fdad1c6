"""What the messages of all APIs have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass
class ToolCall:
    """A call of a tool."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON text, as a rule."""


@dataclass
class Message:
    """One message of a conversation."""

    role: str
    """`system`, `user`, `assistant`, `tool`, …, as the API has it."""
    content: str
    """Its text; parts of other kinds are only in `raw`."""
    name: Optional[str] = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_call_id: Optional[str] = None
    """The call that a message of a tool answers."""
    raw: Any = None
    """What stands in the body."""

    def same_words(self, other: "Message") -> bool:
        """Whether both say the same, however the body writes it."""
        calls = [(call.id, call.name, call.arguments) for call in self.tool_calls]
        others = [(call.id, call.name, call.arguments) for call in other.tool_calls]
        return (self.role, self.content, calls, self.tool_call_id) == (other.role, other.content, others, other.tool_call_id)
