"""What the documentation and the notebook show is executed as it stands."""

import contextlib
import io
import json
import re
import shutil

import pytest
from conftest import REPOSITORY


def executed(text, scope):
    """What a piece of code prints; the value of a last expression is printed, too, as a notebook does."""
    *lines, last = text.rstrip().split("\n")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            value = compile(last, "<last line>", "eval")
        except SyntaxError:
            exec(text, scope)
        else:
            exec("\n".join(lines), scope)
            print(repr(eval(value, scope)))
    return said.getvalue()


def test_the_notebook_runs_from_its_first_cell_to_its_last(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    book = json.loads((REPOSITORY / "examples" / "notebook.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    assert all(cell.get("outputs", []) == [] for cell in book["cells"]), "outputs are not kept"
    scope = {}
    said = [executed(cell, scope) for cell in cells]
    assert "ANSWER: 42" in said[1] and "1 step so far, sealed: False" in said[1] and "{'solver': 1, 'critic': 1}" in said[1]
    assert "True corrupt_number" in said[3] and said[3].count("ANSWER: 42") == 1
    assert said[4].count("messages") == 2


def blocks(page):
    return re.findall("```python\n(.*?)```", (REPOSITORY / page).read_text(), re.DOTALL)


@pytest.fixture
def place(demo, monkeypatch, tmp_path):
    """A directory with what the examples read."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(next(demo.glob("logs/*")), tmp_path / "logs" / "first")
    (tmp_path / "demo-run").symlink_to(demo)


def test_the_page_runs(place, served):
    proxy_url, control, token = served
    scope = {"control_token": token}
    read, rows, proxy, injected, server = blocks("docs/python.md")
    assert "→" in executed(read, scope)
    assert re.fullmatch(r"\d+ \w+ c-\w+\n", executed(rows, scope))
    assert "[429, 200]" in executed(proxy, scope)
    assert executed(injected, scope) == ""
    server = server.replace("http://127.0.0.1:8486", control).replace("http://127.0.0.1:8484", proxy_url)
    assert "ended success {'counter': 1} 1" in executed(server, scope)
    assert scope["injected"].run.name == scope["proxy"].name + "-1" and len(scope["injected"].run.steps) == 1


def test_the_readme_runs(place):
    (block,) = blocks("python/aegis/README.md")
    # Its proxy gets no call there.
    reads, proxy = block.split("with aegis.Proxy")
    assert executed(reads, {}) and "rate-limit" in proxy
