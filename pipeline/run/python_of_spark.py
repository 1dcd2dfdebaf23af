"""The Python that Spark starts next to the driver for a source in Python: that of executors, by the same path.

Spark knows one path for both. The Python of executors that were sent an environment is relative to their working folder
(`./environment/bin/python`), and a driver that is no container of YARN was sent none.
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
            f"no {python} on this host: Spark starts the executors' Python on the driver's host, too; install it here "
            "at the same path, or name another one in PYSPARK_PYTHON"
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
