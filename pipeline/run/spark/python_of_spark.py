"""The Python that Spark starts next to the driver for a Python source: it has the same path as that of executors.

Spark has one path for both. For executors with a shipped environment, the path is relative to their working folder
(`./environment/bin/python`); a driver outside a YARN container has no such environment.
"""

import logging
import shutil
import sys
from pathlib import Path

from pipeline.errors import ConfigError

log = logging.getLogger(__name__)


def provide(python: str) -> None:
    """Make sure that the path leads to a Python on this host too, if need be by a link in the working folder.

    Args:
        python: As Spark starts it (`SparkContext.pythonExec`).

    Raises:
        ConfigError: It does not, and a link cannot help or cannot be made.
    """
    if shutil.which(python) is not None:
        return
    environment, *inside = Path(python).parts
    if inside != ["bin", "python"]:
        raise ConfigError(
            f"no {python} on this host: Spark starts the executors' Python on the driver's host, too; install it "
            "here at the same path, or name another one in PYSPARK_PYTHON"
        )
    link = Path(environment)
    try:
        link.symlink_to(sys.prefix)
    except OSError as error:
        raise ConfigError(
            f"Spark starts {python} on the driver's host, too, and {link.absolute()} cannot be made a link to "
            f"{sys.prefix}: {error.strerror}; start from a folder in which that is possible"
        ) from None
    log.info(
        "made a link for Spark, which starts the executors' Python on the driver's host, too",
        extra={"link": str(link.absolute()), "environment": sys.prefix},
    )
