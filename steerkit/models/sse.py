"""Server-sent events: bytes in, events out. Pure; one Decoder per answer.

Lines end with LF, CRLF or CR and with nothing else: `str.splitlines` would also cut at U+2028, U+2029 and U+0085, which
may stand inside a JSON text. So bytes are cut, and only a whole event is decoded.
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from attrs import frozen

from steerkit.core.errors import ModelError

_BOM = b"\xef\xbb\xbf"


@frozen
class ServerEvent:
    """One event. `event` is its name, "" when the server gave none; `data` is its data lines, joined by LF."""

    event: str
    data: str


class Decoder:
    """Takes the bytes of one event stream, cut anywhere, and gives the events that are whole.

    Time is linear in the bytes, however long a line is. Bytes that are no UTF-8 become U+FFFD.

    Args:
        limit: the most bytes of one event.
    """

    def __init__(self, limit: int = 64 << 20) -> None:
        self._limit = limit
        self._line: list[bytes] = []  # the pieces of a line that has not ended
        self._event = b""
        self._data: list[bytes] = []
        self._size = 0  # bytes in the two lists
        self._first_line = True
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes.

        Raises:
            ModelError: an event is larger than the limit.
        """
        # Nearly always a chunk is one event of one line, as its server wrote it. The rest would make the same of it.
        if chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") and self._at_start():
            data = chunk[6:-2]
            if b"\n" not in data and b"\r" not in data:
                self._grow(len(data))
                self._size, self._first_line = 0, False
                return [ServerEvent("", data.decode("utf-8", "replace"))]
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk.startswith(b"\n"):  # the second half of a CRLF that was cut in two
                chunk = chunk[1:]
        lines = chunk.splitlines()
        if not lines:
            return []
        if self._line and (len(lines) > 1 or chunk[-1] in b"\r\n"):
            lines[0] = b"".join((*self._line, lines[0]))
            self._size -= sum(map(len, self._line))
            self._line.clear()
        if chunk[-1] not in b"\r\n":
            self._line.append(lines.pop())
            self._grow(len(self._line[-1]))
        self._after_cr = chunk.endswith(b"\r")
        return self._take(lines)

    def close(self) -> list[ServerEvent]:
        """The stream has ended: the last event, if no blank line closed it. Its last line may have been cut short."""
        return self._take([b"".join(self._line), b""])

    def _at_start(self) -> bool:
        """Whether nothing of an event has come yet."""
        return not (self._line or self._data or self._event)

    def _take(self, lines: list[bytes]) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        if self._first_line and lines:
            self._first_line = False
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if not line:
                if self._data:
                    data = b"\n".join(self._data).decode("utf-8", "replace")
                    events.append(ServerEvent(self._event.decode("utf-8", "replace"), data))
                    self._data.clear()
                    self._size = sum(map(len, self._line))
                self._event = b""
                continue
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._grow(len(line))
            elif name == b"event":
                self._event = value.removeprefix(b" ")
        return events

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise ModelError(
                f"The server sent one event of more than {self._limit} bytes, which is no model's answer; "
                "the rest was not read. Check that base_url leads to the model's API.",
                kind="server",
            )
