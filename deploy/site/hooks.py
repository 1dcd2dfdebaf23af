"""Hooks of mkdocs: pages made from the code and from files at the top, and links that lead out of the docs."""

import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

# mkdocs loads hooks with their folder on the path.
import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parents[2]
_DOCS = PurePosixPath("deploy/docs")
# Files at the top that are pages of the site.
_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "conf/lagwise.toml": "reference/configuration.md",
    "deploy/docs/adr": "adr/index.md",
}
_LINK = re.compile(r"(!?)\[([^\]]+)\]\((?!\w+://|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """The files of the docs, with pages that are made."""
    made = {
        "reference/configuration.md": reference.configuration(),
        "reference/commands.md": reference.commands(),
        "reference/columns.md": reference.columns(),
        "adr/index.md": reference.decisions(),
    }
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        made[_PAGES[name]] = (_ROOT / name).read_text(encoding="utf-8")
    # Listings are as wide as a terminal.
    made["site.css"] = ".md-grid { max-width: 80rem; }\n"
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The page with each link as the site has it; what the site does not have is named, not linked."""
    uri = page.file.src_uri
    at_top = next((PurePosixPath(name).parent for name, made in _PAGES.items() if made == uri), None)
    folder = _DOCS / PurePosixPath(uri).parent if at_top is None or uri.startswith("adr/") else at_top
    return _LINK.sub(lambda found: _link(found, folder, uri), markdown)


def _link(found: re.Match[str], folder: PurePosixPath, uri: str) -> str:
    image, text, path, anchor = found.groups(default="")
    target = PurePosixPath(posixpath.normpath(folder / path))
    if str(target) in _PAGES:
        inside = PurePosixPath(_PAGES[str(target)])
    elif target.is_relative_to(_DOCS):
        inside = target.relative_to(_DOCS)
    else:
        return f"{text} (`{target}`)" if text.strip("`") != str(target) else text
    up = "../" * (len(PurePosixPath(uri).parts) - 1)
    return f"{image}[{text}]({up}{inside}{anchor})"
