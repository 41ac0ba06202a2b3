"""Hostile requests on raw sockets change nothing and never end the server; SIGTERM ends it."""

import signal
import socket
import time

from served import serving

from cdmae.serving.server import CONNECTIONS

HOST = b"Host: 127.0.0.1\r\n"


def get(target, *headers, host=HOST, method=b"GET", body=b""):
    lines = b"".join(header + b"\r\n" for header in (*headers, b"Connection: close"))
    return method + b" " + target.encode() + b" HTTP/1.1\r\n" + host + lines + b"\r\n" + body


def post(body, *headers):
    return get("/judge", b"Content-Length: %d" % len(body), *headers, method=b"POST", body=body)


REQUESTS = [
    *(get(f"/?system=both&q={text}") for text in ("%00", "%ED%A0%80", "%0d%0aSet-Cookie:a=b")),
    get("/judge?query=x&index=" + "9" * 5000),
    get("/search?q=a", host=b"Host: evil.example\r\n"),
    *(post(b"grade=add&text=x", b"Origin: " + origin) for origin in (b"http://evil", b"null", b"")),
    post(b"\xff\xfe\x00"),
    get("/judge", b"Transfer-Encoding: chunked", method=b"POST", body=b"zz\r\n"),
    get("/", b"X: " + b"a" * 40000),
    b"A" * 40000,
]


def answer(port, request):
    """Send bytes; return what the server answers until it closes the connection."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            connection.sendall(request)
            while piece := connection.recv(1 << 16):
                found += piece
        except (BrokenPipeError, ConnectionResetError):
            pass
    return found


def test_hostile_requests_change_nothing_too_many_are_refused_and_a_signal_ends(tmp_path):
    with serving(tmp_path) as (process, port):
        files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        answered = 0
        for request in REQUESTS:
            found = answer(port, request)
            answered += bool(found)
            assert not found or found[9:10] in b"234", (request[:120], found[:200])
            assert b"\r\nset-cookie" not in found.partition(b"\r\n\r\n")[0].lower()
        assert answered > 8 and process.poll() is None
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files
        assert b'"p0"' in answer(port, get("/search?q=a"))
        half = get("/search?q=a")[:-2]
        address = ("127.0.0.1", port)
        open_ones = [socket.create_connection(address) for _ in range(CONNECTIONS - 1)]
        for connection in open_ones:
            connection.sendall(half)
        assert b" 503 " in answer(port, get("/search?q=a"))
        for connection in open_ones:
            connection.close()
        end = time.monotonic() + 60
        while b'"p0"' not in answer(port, get("/search?q=a")):
            assert time.monotonic() < end
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0 and process.stdout.read() == "ended\n"
