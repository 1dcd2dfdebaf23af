"""Hooks of mkdocs: pages made from the code and from files at the top, and links that lead out of the docs."""

import importlib.util
import re
import sys
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
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
    reference = _reference()
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
    target = _normal(folder / path)
    if str(target) in _PAGES:
        inside = PurePosixPath(_PAGES[str(target)])
    elif target.is_relative_to(_DOCS):
        inside = target.relative_to(_DOCS)
    else:
        return f"{text} (`{target}`)" if text.strip("`") != str(target) else text
    up = "../" * (len(PurePosixPath(uri).parts) - 1)
    return f"{image}[{text}]({up}{inside}{anchor})"


def _normal(path: PurePosixPath) -> PurePosixPath:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    return PurePosixPath(*parts)


def _reference() -> ModuleType:
    """The module beside this one; mkdocs loads hooks by their paths, outside of any package."""
    specification = importlib.util.spec_from_file_location("lagwise_reference", _HERE / "reference.py")
    if specification is None or specification.loader is None:
        raise ImportError(f"{_HERE / 'reference.py'} cannot be loaded")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module
