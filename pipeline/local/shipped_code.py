"""The code of lagwise in one file, for executors without it.

    <cache>/code/lagwise-<key>.zip

It contains the code of this process, so driver and executors have the same version. Executors fetch it at their start,
which may be hours later, so it stays.
"""

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.local.jars import cache_home, filling_cache

_SOURCES = Path(__file__).parents[2]
_PACKAGES = ("assignor", "pipeline")


def zipped(sources: Path = _SOURCES) -> Path:
    """The zip file, which is made if it is missing; its name has a hash of its content.

    Args:
        sources: Folder of the packages.

    Raises:
        MissingDependencyError: The cache cannot be written.
    """
    files = [(name, Path(sources, name).read_bytes()) for name in _names(sources)]
    key = hashlib.sha256(repr(files).encode())
    target = cache_home() / "code" / f"lagwise-{key.hexdigest()[:20]}.zip"
    with filling_cache():
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=target.parent) as scratch:
                made = Path(scratch, target.name)
                with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
                    for name, content in files:
                        archive.writestr(name, content)
                made.replace(target)
    return target


def _names(sources: Path) -> Iterator[str]:
    for package in _PACKAGES:
        for file in sorted(Path(sources, package).rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                yield file.relative_to(sources).as_posix()
