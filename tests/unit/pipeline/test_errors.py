"""Texts that are shown quote no query of a URL."""

import time

from pipeline.errors import without_queries


def test_query_of_each_url_goes_and_all_else_stays() -> None:
    text = "GET https://a.blob/x?sig=S&v=1 'http://b/y?z' https://c/d? why? see https://e/f"

    assert without_queries(text) == "GET https://a.blob/x?… 'http://b/y?…' https://c/d? why? see https://e/f"


def test_text_that_strangers_choose_takes_linear_time() -> None:
    """A group may be called anything, in 32 KiB, and a line of the log may name ten groups."""
    text = "http://" * 50_000
    began_s = time.process_time()

    assert without_queries(text) == text
    assert time.process_time() - began_s < 1
