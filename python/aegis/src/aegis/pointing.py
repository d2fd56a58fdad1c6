"""The variables by which SDKs find the proxy."""

from __future__ import annotations

import os
from typing import Mapping, Optional

# What `aegis run` sets for its command and a program in the place of that command needs.
V1_BASES = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_BASE_URL")
BARE_BASES = ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
BASES = (*V1_BASES, *BARE_BASES)
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
DIRECT = ("NO_PROXY", "no_proxy")
NAMES = (*BASES, *DIRECT, *KEYS, "OPENAI_CUSTOM_HEADERS")
PLACEHOLDER = "aegis-placeholder"


def at(url: str) -> dict[str, str]:
    """The variables that point at a proxy at this address."""
    told = {**dict.fromkeys(V1_BASES, f"{url}/v1"), **dict.fromkeys(BARE_BASES, url)}
    for name in DIRECT:
        told[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1", "localhost"]))
    # SDKs refuse to start without a key.
    told.update({name: PLACEHOLDER for name in KEYS if not os.environ.get(name)})
    return told


class Pointed:
    """Sets variables of this process, and puts them back."""

    def __init__(self) -> None:
        self._before: dict[str, Optional[str]] = {}

    def set(self, variables: Mapping[str, str]) -> None:
        """Set these variables, until `restore`."""
        self._before = {key: os.environ.get(key) for key in variables}
        os.environ.update(variables)

    def restore(self) -> None:
        """Put back what was there."""
        for key, value in self._before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        self._before = {}
