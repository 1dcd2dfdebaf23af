"""What is allowed in a configuration and yet worth a second look."""

from collections.abc import Iterator

from pipeline.config.model import Config
from pipeline.config.secret_values import is_plain_secret


def warnings(config: Config) -> tuple[str, ...]:
    """One sentence per risk, each beginning with the key it is about; never a value that may be a secret."""
    return (*_secrets(config), *_connection(config), *_timing(config), *_plans(config))


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
                    f'{table}."{name}": a secret in plain text travels to the executors; '
                    'write "env:NAME" or "file:/path"'
                )


def _connection(config: Config) -> Iterator[str]:
    given = config.kafka.properties
    if given.get("security.protocol", "").upper() == "SASL_PLAINTEXT":
        yield 'kafka.properties."security.protocol": SASL_PLAINTEXT sends the password unencrypted'
    if given.get("enable.ssl.certificate.verification") == "false":
        yield (
            'kafka.properties."enable.ssl.certificate.verification": false lets anybody answer for the brokers; '
            'name the certificate in "ssl.ca.location"'
        )
    if config.kafka.java:
        yield "kafka.java: has no effect since lagwise reads Kafka without Spark's Java client; remove the table"


def _timing(config: Config) -> Iterator[str]:
    trigger, plan = config.trigger.interval_s, config.plan
    if plan.max_staleness_s < 2 * trigger:
        yield (
            f"plan.max_staleness_s: {plan.max_staleness_s} is less than two triggers ({2 * trigger}), so one "
            "late batch makes every plan abstain"
        )
    if plan.valid_for_s < 2 * plan.interval_s:
        yield (
            f"plan.valid_for_s: {plan.valid_for_s} is less than two planning intervals "
            f"({2 * plan.interval_s}), so plans run out before they are renewed"
        )
    if config.history.interval_s < trigger:
        yield f"history.interval_s: {config.history.interval_s} is less than a trigger ({trigger}): no gain"


def _plans(config: Config) -> Iterator[str]:
    plan = config.plan
    if not plan.dry_run:
        yield "plan.dry_run: false publishes plans for every group, except where [[plan.groups]] says true"
    for earlier, rule in enumerate(plan.groups[:-1]):
        if rule.pattern in {".*", "^.*$"}:
            yield f"plan.groups[{earlier}].pattern: {rule.pattern!r} matches all; later entries never apply"
