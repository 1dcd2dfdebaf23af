"""Bytes of offset commits as real Kafka wrote them, each with its origin.

`KEY_*` and `V*` were made with the classes of kafka-clients and group-coordinator 4.3.1: group "g", topic "t",
partition 3, offset 42, leader epoch 7, metadata "m", commit timestamp 1700000000000. `BROKER_*` were read from
`__consumer_offsets` of a running broker of the same version; the topic id in the first is replaced by a
counted one. `BROKER_CONSUMER_GROUP` and `_LEFT` are values of record type 3 that Kafka 4.2 wrote when the second member of
a group joined, and when the last one had left. `CONSUMER_*` are values of types 5 and 8 that the classes of 4.3.1 made;
`BROKER_CONSUMER_MEMBER` and `_CURRENT` are such that Kafka 4.2 wrote for a member of librdkafka.
"""

TOPIC_ID = bytes.fromhex("01020304050607081112131415161718")
TIMESTAMP_MS = 1_700_000_000_000

KEY_COMMIT = bytes.fromhex("0001 0001 67 0001 74 00000003")
KEY_LEGACY_COMMIT = bytes.fromhex("0000 0001 67 0001 74 00000003")
KEY_GROUP = bytes.fromhex("0002 0001 67")

V0 = bytes.fromhex("0000 000000000000002a 0001 6d 0000018bcfe56800")
V1 = bytes.fromhex("0001 000000000000002a 0001 6d 0000018bcfe56800 ffffffffffffffff")
V2 = bytes.fromhex("0002 000000000000002a 0001 6d 0000018bcfe56800")
V3 = bytes.fromhex("0003 000000000000002a 00000007 0001 6d 0000018bcfe56800")
V4 = bytes.fromhex("0004 000000000000002a 00000007 02 6d 0000018bcfe56800 00")
V4_TOPIC_ID = bytes.fromhex(
    "0004 000000000000002a 00000007 02 6d 0000018bcfe56800 01 00 10 01020304050607081112131415161718"
)
V4_LONG_METADATA = (
    bytes.fromhex("0004 000000000000002a 00000007 c901") + b"m" * 200 + bytes.fromhex("0000018bcfe56800 00")
)

BROKER_V4 = bytes.fromhex(
    "0004 0000000000000003 ffffffff 09 6d6574612dc3a900 000001a1f99aec7c 01 00 10"
    "01020304050607081112131415161718"
)
BROKER_V4_TRANSACTIONAL = bytes.fromhex("0004 0000000000000005 ffffffff 01 000001a1f99af160 00")
BROKER_CONSUMER_GROUP = bytes.fromhex("0000 00000002 01 00 08 c10febad68fa520b")
BROKER_CONSUMER_GROUP_LEFT = bytes.fromhex("0000 00000004 00")

CONSUMER_MEMBER = bytes.fromhex("0000 00 0272 0263 032f68 02 0274 00 00000005 08 756e69666f726d 00")
BROKER_CONSUMER_MEMBER = bytes.fromhex(
    "0000 00 00 0278 0b 2f3132372e302e302e31 02 0274 01 000493e0 00 01 00 01 00"
)
BROKER_CONSUMER_CURRENT = bytes.fromhex(
    "0000 00000001 00000000 00 02 1ab3afcd05aa43dd8cb518c2d0b004c8 04 00000000 00000001 00000002 00 01 00"
)
CONSUMER_MEMBER_CLASSIC = bytes.fromhex(
    "0000 00 0272 0263 032f68 02 0274 00 00000005 08 756e69666f726d 01 00 11 01 00000009 02 06 72616e6765 03 0000 00 00"
)
CONSUMER_CURRENT = bytes.fromhex(
    "0000 00000003 00000002 00 02 0000000000000001 0000000000000002 03 00000000 00000001 01 00 09 03 00000003 00000003"
    "01 00"
)
