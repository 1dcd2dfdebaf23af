"""Bounds-checked reading of Kafka's big-endian primitive types.

    plain      string = int16 length + UTF-8   bytes = int32 length + raw   array = int32 count + items
    compact    the same three with an unsigned varint of length + 1 in front (0 = null), and a section of
               tagged fields after every struct: uvarint count, then {uvarint tag, uvarint size, bytes}

A length of -1 is null in the plain form. Source: KIP-482; Kafka's `ByteBufferAccessor`.
"""

import struct
from collections.abc import Callable
from typing import TypeVar

from assignor.errors import DecodeError

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_MAX_UVARINT_BYTES = 5

_Item = TypeVar("_Item")


class Reader:
    """Reads one value after another from `data`; every method raises `DecodeError` when it cannot.

    Attributes:
        position: Byte that is read next, counted from 0.
        compact: Whether strings, bytes and arrays are in the compact form.
    """

    __slots__ = ("_data", "compact", "position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self.compact = False

    @property
    def remaining(self) -> int:
        """Bytes that are still unread."""
        return len(self._data) - self.position

    def int8(self, name: str) -> int:
        """Signed integer of 1 byte."""
        return self._integer(_INT8, name)

    def int16(self, name: str) -> int:
        """Signed integer of 2 bytes."""
        return self._integer(_INT16, name)

    def int32(self, name: str) -> int:
        """Signed integer of 4 bytes."""
        return self._integer(_INT32, name)

    def int64(self, name: str) -> int:
        """Signed integer of 8 bytes."""
        return self._integer(_INT64, name)

    def uvarint(self, name: str) -> int:
        """Unsigned integer of 7 bits a byte, lowest first, in at most 5 bytes."""
        value = 0
        for shift in range(0, 7 * _MAX_UVARINT_BYTES, 7):
            byte = self.raw(1, name)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the continuation bit
                return value
        raise self.error(f"{name}: varint longer than {_MAX_UVARINT_BYTES} bytes")

    def raw(self, size: int, name: str) -> bytes:
        """The next `size` bytes as they are."""
        if size > self.remaining:
            raise self.error(f"{name}: {size} bytes needed, {self.remaining} left")
        start = self.position
        self.position += size
        return self._data[start : self.position]

    def string(self, name: str) -> str:
        """UTF-8 text; null is an error."""
        return self._text(self._present(self._string_length(name), name), name)

    def nullable_string(self, name: str) -> str | None:
        """UTF-8 text, or None for null."""
        length = self._string_length(name)
        return None if length is None else self._text(length, name)

    def raw_string(self, name: str) -> bytes:
        """The bytes of a string, not checked to be UTF-8; null is an error."""
        return self.raw(self._present(self._string_length(name), name), name)

    def bytes_(self, name: str) -> bytes:
        """Opaque bytes; null is an error."""
        return self.raw(self._present(self._long_length(name), name), name)

    def nullable_bytes(self, name: str) -> bytes | None:
        """Opaque bytes, or None for null."""
        length = self._long_length(name)
        return None if length is None else self.raw(length, name)

    def array(self, name: str, *, item_bytes: int, read: Callable[[], _Item]) -> tuple[_Item, ...]:
        """The items of an array; null is an error.

        Args:
            name: What the array holds, for the error.
            item_bytes: Least size of one item. A count that cannot fit is refused before anything is
                allocated, so four hostile bytes cannot ask for two thousand million items.
            read: Reads one item.
        """
        count = self._present(self._long_length(name), name)
        if count * item_bytes > self.remaining:
            raise self.error(f"{name}: {count} items cannot fit into {self.remaining} bytes")
        return tuple(read() for _ in range(count))

    def int32_array(self, name: str) -> tuple[int, ...]:
        """Array of 4-byte integers; null is an error."""
        count = self._present(self._long_length(name), name)
        return struct.unpack(f">{count}i", self.raw(4 * count, name))

    def tagged_fields(self) -> dict[int, bytes]:
        """Tag to raw content, read by size so that unknown tags do no harm; empty in the plain form."""
        fields: dict[int, bytes] = {}
        if not self.compact:
            return fields
        for _ in range(self.uvarint("tag count")):
            tag = self.uvarint("tag")
            fields[tag] = self.raw(self.uvarint("tag size"), "tagged field")
        return fields

    def error(self, reason: str) -> DecodeError:
        """A `DecodeError` that points at the byte read next."""
        return DecodeError(reason, position=self.position)

    def _integer(self, form: struct.Struct, name: str) -> int:
        value: int = form.unpack(self.raw(form.size, name))[0]
        return value

    def _text(self, length: int, name: str) -> str:
        data = self.raw(length, name)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise DecodeError(f"{name}: not UTF-8", position=self.position - length) from None

    def _string_length(self, name: str) -> int | None:
        return self._length(_INT16, name)

    def _long_length(self, name: str) -> int | None:
        return self._length(_INT32, name)

    def _length(self, form: struct.Struct, name: str) -> int | None:
        length = self.uvarint(name) - 1 if self.compact else self._integer(form, name)
        if length < -1:
            raise self.error(f"{name}: negative length {length}")
        return None if length == -1 else length

    def _present(self, length: int | None, name: str) -> int:
        if length is None:
            raise self.error(f"{name}: null")
        return length
