"""Warnings about settings that are valid but risky."""

from collections.abc import Iterator

from pipeline.config.hosts import is_loopback
from pipeline.config.model import Config
from pipeline.config.no_plans import never_a_plan
from pipeline.config.object_stores import store_of
from pipeline.config.places import is_folder_of_host
from pipeline.config.secret_values import is_plain_secret
from pipeline.config.values import mechanism

ALERTS_OLD_S = 300
"""Age from which the rules of `deploy/monitoring/alerts.yaml` take the tables for old."""

_KIND_OF_CATALOG = "spark.sql.catalogImplementation"


def warnings(config: Config) -> tuple[str, ...]:
    """One line per risk, each beginning with its key; never a value that may be a secret."""
    kinds = (_secrets, _connection, _places, _serving, _timing, _plans)
    return tuple(line for kind in kinds for line in kind(config))


def _secrets(config: Config) -> Iterator[str]:
    tables = {
        "kafka.properties": config.kafka.properties,
        "tables.storage_options": config.tables.storage_options,
        "spark": config.spark,
    }
    for table, settings in tables.items():
        for name, value in settings.items():
            if is_plain_secret(name, value):
                yield (
                    f'{table}."{name}": a secret in plain text is sent to the executors; '
                    'write "env:NAME" or "file:/path"'
                )


def _connection(config: Config) -> Iterator[str]:
    given = config.kafka.properties
    if given.get("security.protocol", "").upper() == "SASL_PLAINTEXT":
        yield 'kafka.properties."security.protocol": SASL_PLAINTEXT sends the password unencrypted; use SASL_SSL'
    yield from _tokens(config)
    if given.get("enable.ssl.certificate.verification") == "false":
        yield (
            'kafka.properties."enable.ssl.certificate.verification": false lets any host pose as a broker; '
            'name the certificate in "ssl.ca.location"'
        )
    if config.kafka.java:
        yield "kafka.java: has no effect since lagwise reads Kafka without Spark's Java client; remove the table"


def _tokens(config: Config) -> Iterator[str]:
    given = config.kafka.properties
    gives_tokens = (
        config.kafka.token_provider
        or given.get("sasl.oauthbearer.method", "").lower() == "oidc"
        or given.get("enable.sasl.oauthbearer.unsecure.jwt") == "true"
    )
    if mechanism(given) == "OAUTHBEARER" and not gives_tokens:
        yield (
            'kafka.properties."sasl.mechanism": nothing gives a token for OAUTHBEARER, so no client can log in; set '
            'kafka.token_provider, or "sasl.oauthbearer.method" = "oidc"'
        )


def _places(config: Config) -> Iterator[str]:
    tables = config.tables
    if not is_folder_of_host(tables.root) and store_of(tables.root) is None:
        yield (
            f"tables.root: {tables.root} is not a local folder; lagwise has not been tried there: only the store keeps "
            "a second driver out, a standby waits much longer, and delta-rs needs tables.storage_options (region, "
            "endpoint, credentials), or it asks the address of a cloud's instance metadata for them"
        )
    if tables.catalog and config.spark.get(_KIND_OF_CATALOG) != "hive":
        yield (
            f"tables.catalog: without a metastore only the job itself sees {tables.catalog}; set "
            f'spark."{_KIND_OF_CATALOG}" = "hive", unless spark-submit sets it, or leave tables.catalog out'
        )


def _serving(config: Config) -> Iterator[str]:
    if config.serve.token and not is_loopback(config.serve.host) and not config.serve.origins:
        yield (
            f"serve.token: is sent unencrypted to {config.serve.host}; put a proxy with TLS before the page and "
            "name it in serve.origins"
        )


def _timing(config: Config) -> Iterator[str]:
    trigger, plan = config.trigger.interval_s, config.plan
    # Tables are as old as the begin of their batch: a trigger, and up to a minute in which the next one runs.
    most = ALERTS_OLD_S - 60
    if trigger > most:
        yield (
            f"trigger.interval_s: {trigger} lets the tables become older than {ALERTS_OLD_S} s, from which alerts.yaml "
            "takes them for old: its alerts on groups hardly ever fire, and LagwiseTablesOld does again and again; "
            f"choose at most {most}, or raise that age in the rules"
        )
    if plan.max_staleness_s < 2 * trigger:
        yield (
            f"plan.max_staleness_s: {plan.max_staleness_s} is less than two triggers ({2 * trigger}), so one "
            "late batch makes lagwise abstain from every plan; raise it"
        )
    if plan.valid_for_s < 2 * plan.interval_s:
        yield (
            f"plan.valid_for_s: {plan.valid_for_s} is less than two planning intervals "
            f"({2 * plan.interval_s}), so plans expire before they are renewed; raise it"
        )
    if config.history.interval_s < trigger:
        given = config.history.interval_s
        yield f"history.interval_s: {given} is less than trigger.interval_s, so {trigger} has the same effect"


def _plans(config: Config) -> Iterator[str]:
    plan = config.plan
    yield from never_a_plan(plan)
    if config.source.asks_groups and (plan.dry_run is not True or plan.groups):
        yield (
            'source.offsets: "admin" makes no plans, since coordinators report neither subscriptions nor generations, '
            'so plan.dry_run and plan.groups have no effect; remove them, or set "topic" if __consumer_offsets is there'
        )
    if plan.dry_run is False:
        yield (
            "plan.dry_run: false publishes plans for every group, except where [[plan.groups]] sets dry_run"
        )
    for earlier, rule in enumerate(plan.groups[:-1]):
        if rule.pattern in {".*", "^.*$"}:
            yield (
                f"plan.groups[{earlier}].pattern: {rule.pattern!r} matches every group, so later entries never "
                "apply; put it last"
            )
