"""A shared server: the files of examples/service by the tools that know them, their command lines run for real, and programs on
the OpenAI SDK behind nginx and haproxy while the server is stopped, killed, reloaded and started again."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import environments, restarts, service_files

NAME = "service"


def test(root, aegis, cache, report):
    """Restarts run behind both balancers at the same time; what each says is reported one after the other."""
    report.heading(NAME)
    programs, reader = environments.python("openai-new", cache), environments.python(NAME, cache)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        folder = Path(scratch)
        service_files.test(root, aegis, cache, reader, folder, report)
        with ThreadPoolExecutor() as legs:
            made = {name: legs.submit(restarts.Leg(name, aegis, cache, folder / name, programs, reader).work) for name in restarts.BALANCERS}
        for name, leg in made.items():
            try:
                restarts.judge(leg.result(), report)
            except Exception as error:
                report.check(f"{name}: its programs and restarts come to an end", False, f"{type(error).__name__}: {error}")
