"""Hypothesis strategies for bytes and text on the wire."""

from hypothesis import strategies as st


def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Text that UTF-8 can hold, from all of Unicode."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=max_size)


@st.composite
def damaged(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> bytes:
    """Bytes of `source` after one to three cuts, overwritten bytes or insertions."""
    data = draw(source)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 4)))
        keep_rest = draw(st.integers(0, 3))
        data = data[:start] + draw(st.binary(max_size=4)) + (data[end:] if keep_rest else b"")
    return data
