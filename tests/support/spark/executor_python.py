"""A Python for Spark's executors, with the dependencies of lagwise and without lagwise, Spark or anything of its tests."""

import sysconfig
import venv
from pathlib import Path

_SITE = Path(sysconfig.get_path("purelib"))
_NOT_THERE = ("lagwise", "_editable_impl_lagwise", "pyspark", "py4j", "delta", "pytest", "_pytest")


def linked_python(folder: Path) -> Path:
    """The program of a virtual environment in this folder, whose packages are links to the ones that tests run with."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for entry in _SITE.iterdir():
        if (entry.suffix != ".pth" and not entry.name.startswith(_NOT_THERE)) or entry.name == "deltalake":
            (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"
