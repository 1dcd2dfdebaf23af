"""Fetch what a run will need and get it ready: `python -m pipeline.operate.fetch`.

All jars, so that nothing is downloaded later, and archives of their classes, so that later starts are short.
"""

import sys

from pipeline.errors import MissingDependencyError
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve, resolve_for_spark
from pipeline.operate.archives import make_archives
from pipeline.run.spark.session import PACKAGES


def main() -> int:
    """Fetch, and return the exit status."""
    try:
        make_archives(
            spark_jars=resolve_for_spark(PACKAGES, report=_say),
            kafka_jars=resolve(KAFKA, report=_say),
            report=_say,
        )
    except MissingDependencyError as error:
        _say(str(error))
        return 1
    return 0


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
