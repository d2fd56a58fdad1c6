"""For mkdocs: pages may link to files of the repository beside `docs`. These become part of the site, below `repository/`, and the
links lead there; a link to a file that is not there stays as it is, and the build says so and fails.
"""

import re
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File

LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
ROOT = Path(__file__).resolve().parent.parent.parent
# Where a page of the site lies in the repository, by its place in the site.
HOMES = {}


def place(home, link):
    """The file of the repository that a link of a page means, as a path in it; None where there is none."""
    path = (ROOT / home).parent.joinpath(link).resolve()
    if path.is_dir() and (path / "README.md").is_file():
        path /= "README.md"
    if not path.is_file() or ROOT not in path.parents:
        return None
    return path.relative_to(ROOT).as_posix()


def in_site(path):
    """Where a file of the repository is in the site."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def on_files(files, config):
    ahead = [f"docs/{file.src_uri}" for file in files if file.src_uri.endswith(".md")]
    HOMES.update((in_site(home), home) for home in ahead)
    while ahead:
        home = ahead.pop()
        for _, link, _ in LINK.findall((ROOT / home).read_text()):
            path = place(home, link)
            if path is None or path.startswith("docs/") or in_site(path) in HOMES:
                continue
            HOMES[in_site(path)] = path
            files.append(File.generated(config, in_site(path), abs_src_path=str(ROOT / path)))
            if path.endswith(".md"):
                ahead.append(path)
    return files


def on_page_markdown(markdown, page, config, files):
    home = HOMES[page.file.src_uri]
    here = PurePosixPath(page.file.src_uri).parent

    def moved(found):
        path = place(home, found[2])
        if path is None:
            return found[0]
        up = "../" * len(here.parts)
        return f"{found[1]}{up}{in_site(path)}{found[3]}"

    return LINK.sub(moved, markdown)
