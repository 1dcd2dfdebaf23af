"""Make the wheel of `lagwise-follow`: python deploy/follow/build.py [folder].

Consumers install it instead of lagwise. It carries its own copy of `assignor`, so that a module of that name in the
consumer's own code does no harm: `assignor.clients` becomes `lagwise_follow`, and what it imports of `assignor`
becomes `lagwise_follow.assignor`.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pipeline.config.load import tomllib

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = "lagwise_follow"

_SOURCES = ROOT / "assignor"
_LEFT_OUT = (Path("cases"), Path("clients/traces"))
"""What is for people at a command line, and for authors of followers in other languages."""
_IMPORTS = re.compile(r"^(\s*(?:>>> |\.\.\. )?(?:from|import) )assignor(\.clients)?\b", re.MULTILINE)


def renamed(source: str) -> str:
    """The source of a module with its imports of `assignor` from where the package has them."""
    return _IMPORTS.sub(lambda found: found[1] + (PACKAGE if found[2] else f"{PACKAGE}.assignor"), source)


def lay_out(target: Path) -> None:
    """Write the source tree of the distribution into a folder.

    Raises:
        OSError: The folder cannot be written.
    """
    for source in sorted(_SOURCES.rglob("*")):
        place = source.relative_to(_SOURCES)
        if source.suffix == ".py" and not any(place.is_relative_to(left) for left in _LEFT_OUT):
            file = target / PACKAGE / _moved(place)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(renamed(source.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copy(_SOURCES / "py.typed", target / PACKAGE)
    shutil.copy(HERE / "README.md", target)
    shutil.copy(ROOT / "LICENSE", target)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    template = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    (target / "pyproject.toml").write_text(template.replace("0.0.0", project["version"]), encoding="utf-8")


def _moved(place: Path) -> Path:
    return place.relative_to("clients") if place.is_relative_to("clients") else "assignor" / place


def build(target: Path) -> None:
    """Write the wheel into a folder, in place of one that is there.

    Raises:
        CalledProcessError: The build backend has failed, and has said why.
    """
    for wheel in target.glob(f"{PACKAGE}-*.whl"):
        wheel.unlink()
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target.resolve())]
        subprocess.run([*command, "--target", "wheel"], cwd=folder, check=True)


if __name__ == "__main__":
    build(Path(*sys.argv[1:2]) if sys.argv[1:] else ROOT / "build" / "dist")
