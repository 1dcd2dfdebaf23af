"""Entry of spark-submit: `spark-submit … pipeline/run/main.py --config lagwise.toml [--once | --standby]`.

Exit status: 0 stopped, 1 failed (the last line gives the reason), 3 `--once` could not read everything in time, or read
nothing for a minute, 4 another driver has taken over the tables; that case is 0 if YARN would restart this driver.
"""

import argparse
import logging
import signal
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from pipeline.config.load import load
from pipeline.errors import FencedError, PipelineError
from pipeline.logs import configure
from pipeline.run.job import Job
from pipeline.run.spark.session import is_driver_of_yarn

INCOMPLETE = 3
FENCED = 4


def run(config_file: Path, *, once: bool, is_standby: bool = False, takes_over: bool = False) -> int:
    """Run the job of a configuration file until SIGTERM or SIGINT; the exit status."""
    configure()
    log = logging.getLogger("pipeline.run.main")
    try:
        job = Job(load(config_file), once=once, is_standby=is_standby, takes_over=takes_over)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: job.stop.set())
        # pyspark takes SIGINT for itself when a session starts in the main thread.
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(job.run)
            while not running.done():
                # A signal that another thread has received is handled when this one wakes up.
                wait([running], timeout=1)
            running.result()
    except PipelineError as error:
        log.critical(str(error))
        return _status_when_fenced() if isinstance(error, FencedError) else 1
    return INCOMPLETE if job.is_incomplete else 0


def _status_when_fenced() -> int:
    # YARN starts an application again that ends otherwise, and the two would take the tables from one another.
    return 0 if is_driver_of_yarn() else FENCED


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="lagwise", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--config", type=Path, default=Path("conf/lagwise.toml"), help="TOML file (%(default)s)"
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--once",
        action="store_true",
        help="stop when the offsets topic was read to its present end, plan once",
    )
    ways.add_argument(
        "--standby",
        action="store_true",
        help="wait, without Spark, until the driver that owns the tables has stopped or its heartbeat is missing",
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="publish even if a driver with other tables publishes for this Kafka cluster; that driver then stops",
    )
    arguments = parser.parse_args()
    status = run(
        arguments.config,
        once=arguments.once,
        is_standby=arguments.standby,
        takes_over=arguments.take_over,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        # Told again while the interpreter ends, it would end by the signal, and not with its status.
        signal.signal(number, signal.SIG_IGN)
    return status


if __name__ == "__main__":
    sys.exit(main())
