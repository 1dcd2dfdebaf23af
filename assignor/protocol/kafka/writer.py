"""Writing of Kafka's big-endian primitive types, in the forms that `reader` describes."""

import struct
from collections.abc import Mapping

from assignor.errors import EncodeError

MAX_STRING_BYTES = 2**15 - 1

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class Writer:
    """Appends one value after another; every method raises `EncodeError` for a value that does not fit.

    Attributes:
        compact: Whether strings, bytes and arrays are written in the compact form.
    """

    __slots__ = ("_parts", "compact")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.compact = False

    def to_bytes(self) -> bytes:
        """Everything written so far."""
        return b"".join(self._parts)

    def int8(self, value: int) -> None:
        """Signed integer of 1 byte."""
        self._integer(_INT8, value)

    def int16(self, value: int) -> None:
        """Signed integer of 2 bytes."""
        self._integer(_INT16, value)

    def int32(self, value: int) -> None:
        """Signed integer of 4 bytes."""
        self._integer(_INT32, value)

    def int64(self, value: int) -> None:
        """Signed integer of 8 bytes."""
        self._integer(_INT64, value)

    def uvarint(self, value: int) -> None:
        """Unsigned integer of 7 bits a byte, lowest first."""
        groups = [value & 0x7F]
        while value := value >> 7:
            groups[-1] |= 0x80
            groups.append(value & 0x7F)
        self._parts.append(bytes(groups))

    def raw(self, data: bytes) -> None:
        """Bytes as they are, without a length."""
        self._parts.append(data)

    def string(self, text: str | None) -> None:
        """Text as UTF-8, or null."""
        try:
            data = None if text is None else text.encode()
        except UnicodeEncodeError as error:
            raise EncodeError(f"text is not encodable: {error}") from error
        if data is not None and len(data) > MAX_STRING_BYTES and not self.compact:
            raise EncodeError(f"string of {len(data)} bytes, at most {MAX_STRING_BYTES} fit")
        self._sized(_INT16, data)

    def bytes_(self, data: bytes | None) -> None:
        """Opaque bytes, or null."""
        self._sized(_INT32, data)

    def array_count(self, count: int) -> None:
        """The count in front of the items of an array."""
        self._length(_INT32, count)

    def int32_array(self, values: tuple[int, ...]) -> None:
        """Array of 4-byte integers."""
        self.array_count(len(values))
        for value in values:
            self.int32(value)

    def tagged_fields(self, fields: Mapping[int, bytes]) -> None:
        """Tagged fields in the order of their tags; nothing in the plain form."""
        if not self.compact:
            return
        self.uvarint(len(fields))
        for tag in sorted(fields):
            self.uvarint(tag)
            self.uvarint(len(fields[tag]))
            self.raw(fields[tag])

    def _integer(self, form: struct.Struct, value: int) -> None:
        try:
            self._parts.append(form.pack(value))
        except struct.error as error:
            raise EncodeError(f"{value} does not fit into {form.size} bytes") from error

    def _sized(self, form: struct.Struct, data: bytes | None) -> None:
        self._length(form, -1 if data is None else len(data))
        self.raw(data or b"")

    def _length(self, form: struct.Struct, length: int) -> None:
        if self.compact:
            self.uvarint(length + 1)
        else:
            self._integer(form, length)
