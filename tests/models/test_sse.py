from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steerkit.core.errors import ModelError
from steerkit.models.sse import Decoder, ServerEvent


def decoded(*chunks: bytes) -> list[tuple[str, str]]:
    decoder = Decoder()
    events: list[ServerEvent] = []
    for chunk in chunks:
        events += decoder.feed(chunk)
    return [(event.event, event.data) for event in events + decoder.close()]


def reference(stream: bytes) -> list[tuple[str, str]]:
    """The algorithm of the standard, the slow and obvious way; the last event counts without a blank line too."""
    text = stream.decode("utf-8", "replace")
    lines = re.split("\r\n|\n|\r", text.removeprefix("\ufeff"))
    events: list[tuple[str, str]] = []
    name, data = "", ""
    for line in [*lines, ""]:
        if line == "":
            if data:
                events.append((name, data[:-1]))
            name, data = "", ""
        else:
            before, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if before == "data":
                data += value + "\n"
            elif before == "event":
                name = value
    return events


PIECES = st.sampled_from(
    [
        *(
            b"data",
            b"data:",
            b"data: ",
            b"event: ",
            b"event:",
            b":",
            b" ",
            b"id: 1",
            b"retry: 5",
            b"[DONE]",
            b"x",
            b"{}",
        ),
        *(b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\x0b", b"\x0c", b"\x1c"),
        *(letter.encode() for letter in "\u00e9\u2028\u0085\U0001f600\ufeff"),
        *(b"\xe2\x82", b"\xff"),
    ]
)


@st.composite
def streams_cut_anywhere(draw: st.DrawFn) -> list[bytes]:
    stream = b"".join(draw(st.lists(PIECES, max_size=40)))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@given(streams_cut_anywhere())
def test_any_stream_cut_anywhere_gives_the_events_of_the_standard(chunks: list[bytes]) -> None:
    assert decoded(*chunks) == reference(b"".join(chunks))


@given(st.lists(PIECES, max_size=40).map(b"".join))
def test_a_stream_that_comes_byte_by_byte_gives_the_same_events(stream: bytes) -> None:
    assert decoded(*(stream[i : i + 1] for i in range(len(stream)))) == reference(stream)


def test_the_byte_order_mark_is_dropped_at_the_beginning_only() -> None:
    assert decoded(b"\xef\xbb", b"\xbfdata: 1\n\n\xef\xbb\xbfdata: 2\n\n") == [("", "1")]


def test_a_line_end_of_cr_and_lf_that_is_cut_in_two_is_one() -> None:
    assert decoded(b"data: 1\r", b"\ndata: 2\r\n\r", b"", b"\n") == [("", "1\n2")]


def test_an_event_is_given_as_soon_as_its_blank_line_has_come() -> None:
    decoder = Decoder()
    assert decoder.feed(b"event: a\ndata: 1\n") == []
    assert decoder.feed(b"\n") == [ServerEvent("a", "1")]


def test_an_event_that_ends_with_cr_is_given_before_the_next_byte_comes() -> None:
    assert Decoder().feed(b"data: 1\r\r") == [ServerEvent("", "1")]


def test_a_line_separator_of_unicode_does_not_end_a_line() -> None:
    text = "a\u2028b\u2029c\u0085d"
    assert decoded(f"data: {text}\n\n".encode()) == [("", text)]


def test_an_event_without_data_is_none() -> None:
    assert decoded(b"event: ping\n\ndata: 1\n\n") == [("", "1")]


def test_the_last_event_needs_no_blank_line() -> None:
    assert decoded(b"data: 1") == [("", "1")]


def test_an_event_above_the_limit_is_an_error_while_it_comes() -> None:
    decoder = Decoder(limit=1000)
    with pytest.raises(ModelError, match="one event of more than 1000 bytes"):
        for _ in range(200):
            decoder.feed(b"x" * 10)


def test_an_event_of_many_lines_above_the_limit_is_an_error() -> None:
    decoder = Decoder(limit=1000)
    with pytest.raises(ModelError, match="one event of more than 1000 bytes"):
        for _ in range(2000):
            decoder.feed(b"data:\n")


def test_a_line_that_comes_in_pieces_is_counted_once() -> None:
    decoder = Decoder(limit=1000)
    for piece in [b"data: ", *[b"x" * 100] * 8]:
        decoder.feed(piece)
    assert len(decoder.feed(b"\n\n")) == 1


def test_events_below_the_limit_may_add_up_to_any_size() -> None:
    decoder = Decoder(limit=1000)
    assert sum(len(decoder.feed(b"data: " + b"x" * 700 + b"\n\n: " + b"y" * 700 + b"\n")) for _ in range(100)) == 100


def test_a_line_of_8_mb_in_small_pieces_takes_linear_time() -> None:
    def seconds(size: int) -> float:
        decoder = Decoder()
        began = time.process_time()
        for _ in range(size // 512):
            decoder.feed(b"x" * 512)
        return time.process_time() - began

    # Quadratic time would be 64 times as much for 8 times the bytes.
    assert seconds(8 << 20) < 30 * max(seconds(1 << 20), 0.002)


# What servers write, and halves of it: most chunks are one whole event.
CHUNKS = [b"data: a\n\n", b"data: b\ndata: c\n\n", b"data: d\r\r\n\n", b"data: ", b"data: e\n", b"event: x\n", b": c\n"]
CHUNKS += [b"\n", b"\r", b"\xef\xbb\xbf", b"data: \xc3\xa9\n\n", b"\xef\xbb\xbfdata: f\n\n", b"data: g\rdata: h\n\n"]


@given(st.lists(st.sampled_from(CHUNKS), max_size=6))
@example([b"event: x\n", b"data: a\n\n"])
@example([b"data: e\n", b"data: a\n\n"])
@example([b"data: ", b"data: a\n\n"])
@example([b"data: a\n\n", b"\xef\xbb\xbfdata: f\n\n"])
@example([b"data: d\r", b"data: a\n\n", b"\n"])
@example([b"\r", b"data: a\n\n", b"\n", b"data: a\n\n"])
def test_chunks_that_are_events_give_what_single_bytes_give(chunks: list[bytes]) -> None:
    whole, single = Decoder(), Decoder()
    events = [event for chunk in chunks for event in whole.feed(chunk)] + whole.close()
    stream = b"".join(chunks)
    expected = [event for byte in stream for event in single.feed(bytes([byte]))] + single.close()
    assert events == expected


def test_a_chunk_that_is_one_event_is_bounded_too() -> None:
    decoder = Decoder(limit=10)
    for _ in range(3):
        assert len(decoder.feed(b"data: 123456789\n\n")) == 1
    with pytest.raises(ModelError):
        decoder.feed(b"data: 12345678901\n\n")
