"""Arrow tables as bytes, for the way between driver and tasks. Pure."""

import pyarrow as pa


def packed(rows: pa.Table) -> bytes:
    """The rows in Arrow's stream format, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(rows.combine_chunks())
    stored: bytes = sink.getvalue().to_pybytes()
    return stored


def unpacked(stored: bytes | pa.BinaryScalar) -> pa.Table:
    """The rows of `packed`."""
    buffer = stored.as_buffer() if isinstance(stored, pa.BinaryScalar) else pa.py_buffer(stored)
    with pa.ipc.open_stream(buffer) as stream:
        return stream.read_all()
