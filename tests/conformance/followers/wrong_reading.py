"""Changes to a whole process that make it read the control topic otherwise than `deploy/docs/records.md` says."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn, TypeAlias

from assignor.clients.confluent import reader as of_confluent
from assignor.clients.control import ControlState, Fed, Headers
from assignor.clients.kafka_python import background as of_kafka_python
from assignor.protocol import control
from assignor.protocol.control import ControlRecord

Document: TypeAlias = dict[str, Any]
_FIELDS = {
    "schema",
    "cluster",
    "group",
    "epoch",
    "strategy",
    "dry_run",
    "group_protocol",
    "created_at",
    "valid_until",
    "base",
    "migration",
    "members",
    "moves",
    "unassigned",
    "why",
}


def _reads_as(change: Callable[[ControlState, Document], Document | None]) -> None:
    """Each plan is read as if it said this instead; None for damage."""
    feed = ControlState.feed

    def feeds(self: ControlState, key: bytes | None, value: bytes | None, headers: Headers = None) -> Fed:
        try:
            document = json.loads(value or b"")
        except ValueError:
            return feed(self, key, value, headers)
        if not isinstance(document, dict) or "epoch" not in document:
            return feed(self, key, value, headers)
        changed = change(self, document)
        if changed is None:
            return Fed.DAMAGED
        names = str(changed["cluster"]), str(changed["group"])
        return feed(self, control.encode_key(*names), json.dumps(changed).encode(), headers)

    ControlState.feed = feeds  # type: ignore[method-assign]  # in the whole process


def _in_32_bits(_: ControlState, document: Document) -> Document:
    return document | {"epoch": (document["epoch"] + 2**31) % 2**32 - 2**31}


def _any_epoch() -> None:
    def take(self: ControlState, record: ControlRecord) -> Fed:
        self._seen = (record.epoch, record)
        return Fed.NEWER

    ControlState._take = take  # type: ignore[method-assign]  # in the whole process


def _forgets_withdrawals() -> None:
    def withdraw(self: ControlState, _: int | None) -> Fed:
        self._seen = (self.epoch, None)
        return Fed.WITHDRAWN

    ControlState._withdraw = withdraw  # type: ignore[method-assign]  # in the whole process


def _ignores_withdrawals(*, with_epoch: bool) -> None:
    withdraw = ControlState._withdraw

    def withdraws(self: ControlState, epoch: int | None) -> Fed:
        return Fed.OLD if with_epoch or epoch is None else withdraw(self, epoch)

    ControlState._withdraw = withdraws  # type: ignore[method-assign]  # in the whole process


def _ends_on_damage() -> None:
    def end(_: ControlState, error: object) -> NoReturn:
        sys.stderr.write(f"damaged: {error}\n")
        sys.stderr.flush()
        os._exit(3)

    ControlState._note_damage = end  # type: ignore[method-assign]  # in the whole process


def _reads_aborted() -> None:
    config = of_confluent.reader_config
    of_confluent.reader_config = lambda given: {**config(given), "isolation.level": "read_uncommitted"}
    of_kafka_python._READER = {**of_kafka_python._READER, "isolation_level": "read_uncommitted"}


def _starts_at_the_end() -> None:
    starts = of_confluent.TopicsReader._starts_of_acks

    def starts_there(self: of_confluent.TopicsReader, reader: Any, ends: Any) -> Any:
        return {**ends, **starts(self, reader, ends)}

    of_confluent.TopicsReader._starts_of_acks = starts_there  # type: ignore[method-assign]  # in the whole process


def _passes_over_other_protocols(_: ControlState, document: Document) -> Document | None:
    return document if document.get("group_protocol", "classic") == "classic" else None


def _never_expires() -> None:
    newest = ControlState.newest
    ControlState.newest = lambda self, _now_ms: newest(self, 0)  # type: ignore[method-assign]  # in the whole process


CHANGES: Mapping[str, Callable[[], None]] = {
    "any-cluster": partial(_reads_as, lambda state, plan: plan | {"cluster": state.cluster}),
    "any-epoch": _any_epoch,
    "any-group": partial(_reads_as, lambda state, plan: plan | {"group": state.group}),
    "any-group-protocol": partial(_reads_as, lambda _, plan: plan | {"group_protocol": "classic"}),
    "ends-on-damage": _ends_on_damage,
    "epochs-of-32-bits": partial(_reads_as, _in_32_bits),
    "follows-dry-run": partial(_reads_as, lambda _, plan: plan | {"dry_run": False}),
    "forgets-withdrawals": _forgets_withdrawals,
    "ignores-withdrawals": partial(_ignores_withdrawals, with_epoch=True),
    "ignores-withdrawals-without-epoch": partial(_ignores_withdrawals, with_epoch=False),
    "known-fields-only": partial(_reads_as, lambda _, plan: plan if plan.keys() <= _FIELDS else None),
    "known-schema-only": partial(_reads_as, lambda _, plan: plan if plan["schema"] == 1 else None),
    "never-expires": _never_expires,
    "passes-over-other-protocols": partial(_reads_as, _passes_over_other_protocols),
    "reads-aborted": _reads_aborted,
    "starts-at-the-end": _starts_at_the_end,
}
