"""`python -m tests.conformance`: judge a follower."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.errors import PipelineError
from tests.conformance import report
from tests.conformance.assignor import RULES as ASSIGNOR
from tests.conformance.hand_over import RULES as HAND_OVER
from tests.conformance.trial import Verdict, judge
from tests.support.brokers.broker import create_offsets_topic, small_broker

_HELP = """\
Starts a Kafka broker and three processes of CMD as members of one group, publishes plans to it, good ones and others,
kills and stops members, takes lagwise's topics away, and prints for each rule of deploy/docs/following.md or
following-assignors.md whether it was kept.

CMD finds in its environment what it needs:

  LAGWISE_BOOTSTRAP_SERVERS, LAGWISE_GROUP, LAGWISE_TOPIC, LAGWISE_CLUSTER, LAGWISE_CONTROL_TOPIC, LAGWISE_ACKS_TOPIC,
  LAGWISE_MEMBER (its name, and its client.id), LAGWISE_SESSION_TIMEOUT_MS, LAGWISE_TAKE_TIMEOUT_MS

It consumes the topic from its beginning, one process one member, and prints a line for each thing that happens:

  m1 joined 3 m1-50381e11 0,1    m1 gained 3 0,1    m1 record 0 17    m1 revoked 0,1    m1 lost 0,1    m1 stopped

The line `stop` on its standard input ends it. deploy/docs/conformance.md says all of it, with a follower to copy."""
_ENDING = """\
examples:
  python -m tests.conformance --hand-over -- python -m tests.conformance.followers.confluent
  python -m tests.conformance --assignor -- python -m tests.conformance.followers.kafka_python eager
  python -m tests.conformance --assignor -o json -- java -cp … MyFollower

exit status: 0 every rule kept, 1 a rule broken, 2 not judged: the group did not form, or the call is wrong"""


def main(arguments: Sequence[str]) -> int:
    """Judge the command that the arguments name, and give the exit status."""
    options, command = _parse(arguments)
    rules = [
        rule
        for rule in (HAND_OVER if options.hand_over else ASSIGNOR)
        if not (options.quick and rule.is_slow)
    ]
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    verdicts: list[Verdict] = []
    try:
        with TemporaryDirectory() as folder, small_broker() as broker:
            create_offsets_topic(broker.bootstrap_servers)
            for verdict in judge(broker.bootstrap_servers, Path(folder), command, rules):
                verdicts.append(verdict)
                if options.output == "text":
                    report.show(verdict)
    except PipelineError as error:
        sys.stderr.write(f"no broker, so nothing was judged: {error}\n")
        return report.NOT_JUDGED
    if options.output == "json":
        report.show_json(verdicts, command)
    else:
        report.show_sum(verdicts)
    return report.exit_status(verdicts)


def _parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance",
        description=_HELP,
        epilog=_ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="python -m tests.conformance (--hand-over | --assignor) [--quick] [-o json] -- CMD [ARGUMENT …]",
    )
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument(
        "--hand-over", action="store_true", help="CMD moves partitions within a generation: following.md"
    )
    kind.add_argument(
        "--assignor",
        action="store_true",
        help="CMD's leader assigns plans in a rebalance: following-assignors.md",
    )
    parser.add_argument("--quick", action="store_true", help="leave out what takes longer than a session")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:split])
    command = list(arguments[split + 1 :])
    if not command:
        parser.error("no CMD: write -- and behind it what starts one member, as in the examples of --help")
    return options, command


if __name__ == "__main__":
    # Otherwise what was started would outlive the kit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(report.NOT_JUDGED))
    sys.exit(main(sys.argv[1:]))
