"""librdkafka's own mock cluster: several brokers inside this process, which can be made to hang, fail or move.

For what a real cluster cannot be made to do in time. The mock speaks Kafka's protocol over TCP, so clients under
test are real. Its brokers have the ids 1 to N. Written against `rdkafka_mock.h` of librdkafka 2.16.
"""

import ctypes
from types import TracebackType
from typing import Final, final

from confluent_kafka import KafkaError, KafkaException, Producer, cimpl

FETCH: Final = 1
LIST_OFFSETS: Final = 2
"""API key, as `fail_next` takes it."""
METADATA: Final = 3

_NO_LEADER: Final = -1
_PRODUCER: Final = 0
_CONF_OK: Final = 0
_ERROR_BYTES: Final = 512

TOO_LARGE: Final = (bytes(1_000_000),) * 200
"""A batch that packs to a few kilobytes, and unpacks to more than librdkafka takes."""

_Handle = ctypes.c_void_p
_Text = ctypes.c_char_p
_Int32 = ctypes.c_int32
_Int = ctypes.c_int

_SIGNATURES: Final[dict[str, tuple[object, list[object]]]] = {
    "rd_kafka_conf_new": (_Handle, []),
    "rd_kafka_conf_set": (_Int, [_Handle, _Text, _Text, _Text, ctypes.c_size_t]),
    "rd_kafka_new": (_Handle, [_Int, _Handle, _Text, ctypes.c_size_t]),
    "rd_kafka_destroy": (None, [_Handle]),
    "rd_kafka_mock_cluster_new": (_Handle, [_Handle, _Int]),
    "rd_kafka_mock_cluster_destroy": (None, [_Handle]),
    "rd_kafka_mock_cluster_bootstraps": (_Text, [_Handle]),
    "rd_kafka_mock_topic_create": (_Int, [_Handle, _Text, _Int, _Int]),
    "rd_kafka_mock_topic_delete": (_Int, [_Handle, _Text]),
    "rd_kafka_mock_topic_set_error": (None, [_Handle, _Text, _Int]),
    "rd_kafka_mock_partition_set_leader": (_Int, [_Handle, _Text, _Int32, _Int32]),
    "rd_kafka_mock_partition_delete_records": (
        _Int,
        [_Handle, _Text, _Int32, ctypes.c_int64],
    ),
    "rd_kafka_mock_broker_set_rtt": (_Int, [_Handle, _Int32, _Int]),
    "rd_kafka_mock_broker_set_down": (_Int, [_Handle, _Int32]),
    "rd_kafka_mock_broker_set_up": (_Int, [_Handle, _Int32]),
    "rd_kafka_mock_set_controller_id": (_Int, [_Handle, _Int32]),
    "rd_kafka_mock_push_request_errors_array": (
        None,
        [_Handle, ctypes.c_int16, ctypes.c_size_t, ctypes.POINTER(_Int)],
    ),
    # Variadic: for each error its code and how many milliseconds later it is sent.
    "rd_kafka_mock_broker_push_request_error_rtts": (
        _Int,
        [_Handle, _Int32, ctypes.c_int16, ctypes.c_size_t, _Int, _Int],
    ),
    "rd_kafka_mock_start_request_tracking": (None, [_Handle]),
    "rd_kafka_mock_stop_request_tracking": (None, [_Handle]),
    "rd_kafka_mock_get_requests": (
        ctypes.POINTER(_Handle),
        [_Handle, ctypes.POINTER(ctypes.c_size_t)],
    ),
    "rd_kafka_mock_request_api_key": (ctypes.c_int16, [_Handle]),
    "rd_kafka_mock_request_destroy_array": (None, [ctypes.POINTER(_Handle), ctypes.c_size_t]),
}


def _library() -> ctypes.CDLL:
    # The extension module brings its librdkafka; symbols are looked up in what it depends on, too.
    library = ctypes.CDLL(cimpl.__file__)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_LIB: Final = _library()


@final
class MockCluster:
    """Brokers 1 to `brokers`; a context manager.

    Attributes:
        bootstrap: `host:port` of each broker, with commas between.
    """

    def __init__(self, brokers: int = 3) -> None:
        self._client = _client()
        self._cluster = _LIB.rd_kafka_mock_cluster_new(self._client, brokers)
        self.bootstrap: str = _LIB.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        self.controller(1)

    def __enter__(self) -> "MockCluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _LIB.rd_kafka_mock_cluster_destroy(self._cluster)
        _LIB.rd_kafka_destroy(self._client)

    def address(self, broker: int) -> str:
        """`host:port` of one broker."""
        return self.bootstrap.split(",")[broker - 1]

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic; its partitions are led by the brokers in turn."""
        _accept(_LIB.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1))

    def delete(self, topic: str) -> None:
        """Delete a topic with its records; one created again under its name has another topic id."""
        _accept(_LIB.rd_kafka_mock_topic_delete(self._cluster, topic.encode()))

    def refuse(self, topic: str, code: int) -> None:
        """Answer metadata of the topic with an error; 0 stops that."""
        _LIB.rd_kafka_mock_topic_set_error(self._cluster, topic.encode(), code)

    def fill(self, topic: str, counts: dict[int, int]) -> None:
        """Append that many records to each partition."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, "linger.ms": 1})
        for partition, count in counts.items():
            for _ in range(count):
                producer.produce(topic, b"x", partition=partition)
        assert producer.flush(30) == 0

    def write(self, topic: str, *batches: tuple[bytes, ...]) -> None:
        """Append each of these compressed batches of values to the first partition."""
        properties = {"compression.type": "zstd", "log_level": 0, "linger.ms": 60_000}
        sizes = {"message.max.bytes": 1_000_000_000, "batch.size": 1_000_000_000}
        producer = Producer({"bootstrap.servers": self.bootstrap, **properties, **sizes})
        for batch in batches:
            for value in batch:
                producer.produce(topic, value, partition=0)
            assert producer.flush(60) == 0

    def delete_records(self, topic: str, partition: int, *, before: int) -> None:
        """Move the log start to that offset."""
        _accept(_LIB.rd_kafka_mock_partition_delete_records(self._cluster, topic.encode(), partition, before))

    def lead(self, topic: str, partition: int, broker: int) -> None:
        """Make this broker the leader, with the next leader epoch."""
        _accept(_LIB.rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), partition, broker))

    def unlead(self, topic: str, partition: int) -> None:
        """Leave the partition without a leader."""
        self.lead(topic, partition, _NO_LEADER)

    def hang(self, broker: int, *, seconds: float = 60) -> None:
        """Let the broker keep its connections and answer each request so much later."""
        _accept(_LIB.rd_kafka_mock_broker_set_rtt(self._cluster, broker, int(seconds * 1000)))

    def answer(self, broker: int) -> None:
        """End `hang`."""
        self.hang(broker, seconds=0)

    def stop(self, broker: int) -> None:
        """Close the broker's connections and refuse new ones."""
        _accept(_LIB.rd_kafka_mock_broker_set_down(self._cluster, broker))

    def start(self, broker: int) -> None:
        """End `stop`."""
        _accept(_LIB.rd_kafka_mock_broker_set_up(self._cluster, broker))

    def controller(self, broker: int) -> None:
        """Name the controller in metadata; without one librdkafka describes no topics."""
        _accept(_LIB.rd_kafka_mock_set_controller_id(self._cluster, broker))

    def fail_next(self, api_key: int, *codes: int) -> None:
        """Answer the next requests of this kind, whoever receives them, with these errors in turn."""
        errors = (_Int * len(codes))(*codes)
        _LIB.rd_kafka_mock_push_request_errors_array(self._cluster, api_key, len(codes), errors)

    def fail_next_of(self, broker: int, api_key: int, code: int) -> None:
        """Answer the next request of this kind that this broker receives with an error."""
        _accept(_LIB.rd_kafka_mock_broker_push_request_error_rtts(self._cluster, broker, api_key, 1, code, 0))

    def watch(self) -> None:
        """Count requests from now on."""
        _LIB.rd_kafka_mock_start_request_tracking(self._cluster)

    def requests(self, api_key: int) -> int:
        """How many requests of this kind all brokers have received since `watch`."""
        count = ctypes.c_size_t()
        found = _LIB.rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        keys = [_LIB.rd_kafka_mock_request_api_key(found[index]) for index in range(count.value)]
        _LIB.rd_kafka_mock_request_destroy_array(found, count.value)
        return keys.count(api_key)


def _client() -> int:
    """The client that owns the cluster, with nothing to say."""
    said = ctypes.create_string_buffer(_ERROR_BYTES)
    conf = _LIB.rd_kafka_conf_new()
    if _LIB.rd_kafka_conf_set(conf, b"log_level", b"0", said, _ERROR_BYTES) != _CONF_OK:
        raise RuntimeError(said.value.decode())
    client: int | None = _LIB.rd_kafka_new(_PRODUCER, conf, said, _ERROR_BYTES)
    if client is None:
        raise RuntimeError(said.value.decode())
    return client


def _accept(code: int) -> None:
    """Raise what a call of the mock returned, unless it is success."""
    if code:
        raise KafkaException(KafkaError(code))
