"""`lagwise control tail`: the control topic as consumers see it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from confluent_kafka import OFFSET_BEGINNING, Consumer

from pipeline.config.load import load
from pipeline.config.model import Config
from pipeline.kafka.client import librdkafka_properties
from pipeline.kafka.errors import client_with_reason, explained
from pipeline.operate.cli.control.entry import Entry, entry
from pipeline.operate.cli.locations import StreamConfigOption, find_config
from pipeline.operate.output import note, progress
from pipeline.operate.poll import READER, assign_all, messages
from pipeline.publish.claim import is_claim

control = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Read the control topic, which carries the published plans.",
)


@control.command()
def tail(
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for more plans, or stop at the end.")
    ] = True,
    output: Annotated[
        Literal["text", "json"],
        typer.Option("--output", "-o", help="A line for people, or one JSON object per line."),
    ] = "text",
    bootstrap: Annotated[
        str | None,
        typer.Option("--bootstrap", metavar="HOST:PORT", help="Brokers, instead of a configuration."),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", metavar="TOPIC", help="Topic, instead of control.topic in the configuration."
        ),
    ] = None,
    config: StreamConfigOption = None,
) -> None:
    """Print the plans on the control topic, then new ones.

    Example: lagwise control tail --no-follow -o json

    It begins with the oldest plan on the topic and waits for new ones until Ctrl-C. It reads committed records only,
    joins no group and commits nothing. Damaged records are marked.

    Exit status: 0 the topic was read, 1 there is no such topic or no broker answers, 2 wrong usage.
    """
    settings = _settings(bootstrap, config)
    properties = librdkafka_properties(settings, **{"group.id": "lagwise-control-tail"}, **READER)
    consumer, reason = client_with_reason(Consumer, properties)
    try:
        name = topic or settings.control.topic
        with progress("asking the brokers"), explained("the Kafka cluster cannot be used", reason):
            partitions = assign_all(
                consumer, name, offset=OFFSET_BEGINNING, timeout_s=settings.source.request_timeout_s
            )
        for message in messages(consumer, topic=name, partitions=partitions, follow=follow):
            if not is_claim(message.key()):
                _print(entry(message), output=output)
    except KeyboardInterrupt:
        note("stopped")
    finally:
        consumer.close()


@control.callback()
def _only_group() -> None:
    """Keep `tail` a subcommand: typer would make a lone command the group itself."""


def _settings(bootstrap: str | None, config: Path | None) -> Config:
    if bootstrap:
        return Config.model_validate({"kafka": {"properties": {"bootstrap.servers": bootstrap}}})
    return load(find_config(config))


def _print(found: Entry, *, output: Literal["text", "json"]) -> None:
    typer.echo(json.dumps(asdict(found)) if output == "json" else found.as_text())
