"""The program of `openai_agents_responses`, word for word, over one WebSocket an agent's model instead of a request a call."""

import runpy
from pathlib import Path

from agents import set_default_openai_responses_transport

set_default_openai_responses_transport("websocket")
runpy.run_path(str(Path(__file__).parent.parent / "openai_agents_responses" / "main.py"), run_name="__main__")
