"""Bytes of group metadata and of the consumer protocol as real clients wrote them, each with its origin.

Java: classes of kafka-clients and group-coordinator 4.3.1. Subscription of topics t1 and t2 that owns t1-0 and
t1-1 in generation 7 on rack "ra", by cooperative-sticky. kafka-python: its 3.0.12 encoder.
"""

SUBSCRIPTION_V0 = bytes.fromhex("0000 00000002 0002 7431 0002 7432 00000004 00000007")
_OWNED = bytes.fromhex("00000001 0002 7431 00000002 00000000 00000001")
_BODY_V0 = SUBSCRIPTION_V0[2:]
SUBSCRIPTION_V1 = b"\x00\x01" + _BODY_V0 + _OWNED
SUBSCRIPTION_V2 = b"\x00\x02" + _BODY_V0 + _OWNED + bytes.fromhex("00000007")
SUBSCRIPTION_V3 = b"\x00\x03" + _BODY_V0 + _OWNED + bytes.fromhex("00000007 0002 7261")

ASSIGNMENT_V3 = bytes.fromhex(
    "0003 00000002 0002 7431 00000002 00000001 00000000 0001 62 00000001 00000003 ffffffff"
)
"""t1: 1, 0 and b: 3, in this order."""

STICKY_V1 = bytes.fromhex("00000002 0001 74 00000002 00000000 00000002 0001 75 00000001 00000001 00000007")
"""Java "sticky": t: 0, 2 and u: 1 in generation 7."""
STICKY_V0 = STICKY_V1[:-4]
STICKY_V1_KAFKA_PYTHON = b"\x00\x01" + STICKY_V1

GROUP_V3 = bytes.fromhex(
    "0003 0008 636f6e73756d6572 00000005 0005 72616e6765 0002 6d31 0000018bcfe56800 00000001"
    "0002 6d31 ffff 0001 63 0002 2f68 00000001 00000002 00000002 0000 00000000"
)
"""Group of one dynamic member m1 (client c, host /h, timeouts 1 and 2 ms), range, generation 5."""
