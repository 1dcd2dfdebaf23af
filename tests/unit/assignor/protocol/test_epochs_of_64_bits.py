"""Epochs are seconds since 1970, which 32 bits will not hold: everything that carries one keeps all of it."""

import pytest

from assignor.clients.control import ControlState, Fed
from assignor.clients.plugin.user_data import (
    AssignmentData,
    SubscriptionData,
    assignment_data_of,
    decode_subscription_data,
    encode_assignment_data,
    encode_subscription_data,
)
from assignor.protocol import acks, control, marks
from assignor.protocol.kafka.sticky import Claims
from tests.support.followers.plans import plan

EPOCHS = [1_795_000_000, 2**31, 2**32 + 7, 2**53]


@pytest.mark.parametrize("epoch", EPOCHS)
def test_record_header_acknowledgement_mark_and_user_data_keep_it(epoch: int) -> None:
    record = plan({"m": {}}, {"m": {}}, epoch=epoch)
    ack = acks.Accepted(cluster="local", group="g", generation=7, epoch=epoch, member="m", at_ms=1)
    mark = marks.HandOverMark(kind="taken", generation=7, epoch=epoch, hop=1)
    joins = SubscriptionData(claims=Claims(owned={}, generation=7), plan_epoch=epoch, held=False)
    answer = AssignmentData(epoch=epoch)

    value = control.encode(record, limit_bytes=10_000)
    assert control.decode(value) == record
    assert dict(control.headers(epoch))["epoch"] == str(epoch).encode()
    assert acks.decode(acks.encode_key(ack), acks.encode(ack)) == ack
    assert marks.split(marks.with_mark("mine", mark)) == ("mine", mark)
    assert decode_subscription_data(encode_subscription_data(joins)) == joins
    assert assignment_data_of(encode_assignment_data(answer)) == answer


@pytest.mark.parametrize("epoch", EPOCHS)
def test_reader_goes_on_from_an_epoch_that_was_counted_and_lets_no_earlier_one_back(epoch: int) -> None:
    reader = ControlState(cluster="local", group="g")
    key = control.encode_key("local", "g")

    fed = [
        reader.feed(key, control.encode(plan({"m": {}}, {"m": {}}, epoch=one), limit_bytes=10_000))
        for one in (17, epoch, 18)
    ]

    assert reader.epoch == epoch
    assert fed == [Fed.NEWER, Fed.NEWER, Fed.OLD]
