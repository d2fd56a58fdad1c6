"""A tap on the wire: passes TCP connections on as they are, keeps the bytes of both directions, and reads them as HTTP/1.1 afterwards."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass
class Message:
    """One request or reply: its first line, its headers by lower-case name, and its body without the framing."""

    line: str
    headers: dict[str, str]
    body: bytes
    whole: bool


@dataclass
class Exchange:
    """A request, and what came of it."""

    request: Message
    reply: Message | None

    @property
    def method(self) -> str:
        return self.request.line.split(" ")[0]

    @property
    def path(self) -> str:
        return self.request.line.split(" ")[1]


@dataclass
class Connection:
    """The bytes of one connection, and how many of its exchanges are left out."""

    forgotten: int = 0
    sent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)


class Tap:
    """Listens on a free port before another one, until it is closed."""

    def __init__(self, port: int) -> None:
        self.before = port
        self.connections: list[Connection] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.listener.close()

    def exchanges(self) -> list[Exchange]:
        """All that began since the last `forget`, by connection."""
        return [exchange for connection in list(self.connections) for exchange in read(connection)[connection.forgotten :]]

    def forget(self) -> None:
        """Leave out what began so far."""
        for connection in list(self.connections):
            connection.forgotten = len(read(connection))

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.before))
                connection = Connection()
                self.connections.append(connection)
                for end, other, kept in ((client, server, connection.sent), (server, client, connection.received)):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=passed, args=(end, other, kept), daemon=True).start()


def passed(end: socket.socket, other: socket.socket, kept: bytearray) -> None:
    """Pass one direction on until it ends. Then all is over: no client or server here closes one half of a connection, and to pass on no
    more than a half would keep from the other end that somebody left."""
    with suppress(OSError):
        while piece := end.recv(65536):
            kept += piece
            other.sendall(piece)
    for one in (end, other):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def read(connection: Connection) -> list[Exchange]:
    requests, replies = messages(bytes(connection.sent)), messages(bytes(connection.received), replies=True)
    return [Exchange(request, replies[at] if at < len(replies) else None) for at, request in enumerate(requests)]


def messages(stream: bytes, replies: bool = False) -> list[Message]:
    """The messages of one direction; the last may be cut off."""
    found = []
    while stream:
        head, blank, stream = stream.partition(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").split("\r\n")
        if not blank:
            break
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = line.split(" ")[1]
        if replies and status.startswith("1"):
            continue
        if "chunked" in headers.get("transfer-encoding", ""):
            body, whole, stream = chunked(stream)
        elif replies and status not in ("204", "304") and "content-length" not in headers:
            body, whole, stream = stream, True, b""
        else:
            length = int(headers.get("content-length", 0))
            body, stream = stream[:length], stream[length:]
            whole = len(body) == length
        found.append(Message(line, headers, body, whole))
    return found


def chunked(stream: bytes) -> tuple[bytes, bool, bytes]:
    """A body of chunks, whether its end came, and what follows it."""
    body = b""
    while True:
        size, line, rest = stream.partition(b"\r\n")
        if not line:
            return body, False, b""
        length = int(size.split(b";")[0], 16)
        body += rest[:length]
        if len(rest) < length + 2:
            return body, False, b""
        stream = rest[length + 2 :]
        if not length:
            return body, True, stream
