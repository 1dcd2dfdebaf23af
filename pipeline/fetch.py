"""Fetch every jar that a run will need, so that nothing is downloaded later: `python -m pipeline.fetch`.

Prints the class path of the Spark side with `--spark-class-path`, for spark-submit's `--jars`.
"""

import argparse
import sys

from pipeline.artifacts import resolve, resolve_for_spark
from pipeline.embedded import KAFKA
from pipeline.errors import MissingDependencyError
from pipeline.session import PACKAGES


def main() -> int:
    """Fetch; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.fetch", description=__doc__)
    parser.add_argument("--spark-class-path", action="store_true", help="print Spark's jars, comma-separated")
    arguments = parser.parse_args()
    try:
        spark = resolve_for_spark(PACKAGES, report=_say)
        if arguments.spark_class_path:
            print(",".join(map(str, spark)))  # noqa: T201 - what the option is for
        else:
            resolve(KAFKA, report=_say)
    except MissingDependencyError as error:
        _say(str(error))
        return 1
    return 0


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
