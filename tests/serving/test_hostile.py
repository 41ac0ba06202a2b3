"""Hostile requests on raw sockets change nothing and never end the server; SIGTERM ends it."""

import itertools
import re
import signal
import socket
import time
import urllib.request
from urllib.parse import quote

import pytest
from served import serving

from cdmae.serving import connections

HOST = b"Host: 127.0.0.1\r\n"
SENTENCE = "x' OR 1=1 --"


@pytest.fixture
def server(tmp_path):
    with serving(tmp_path) as (process, port):
        yield process, port


def get(target, *headers, host=HOST, method=b"GET", version=b"HTTP/1.1", body=b""):
    target = target if isinstance(target, bytes) else target.encode()
    lines = b"".join(header + b"\r\n" for header in headers)
    return method + b" " + target + b" " + version + b"\r\n" + host + lines + b"\r\n" + body


def post(body, *headers, target=b"/judge"):
    length = b"Content-Length: %d" % len(body)
    return get(target, length, *headers, method=b"POST", body=body)


def requests():
    """Yield requests that no client should send, and the first digits of allowed statuses."""
    texts = [
        *("%00", "%FF%FE", "%ED%A0%80", "%0d%0aSet-Cookie:a=b", "%F0%9F%98%80" * 400, "a" * 2000),
        *("a" * 2001, "%", "%zz", "%2e%2e%2f", "{{7*7}}", "${jndi:ldap://x}", "<svg/onload=x>"),
        *(quote(SENTENCE), "%E2%80%AE", "+" * 500, "*:*", '%22"(((', "AND+OR+NOT", "a%5E1e999"),
        *("field:%5B*+TO+*%5D", "%1b%5B2J", "%E0%80%80", "a" * 15000, "%25" * 5000),
    ]
    for text in texts:
        yield get(f"/search?q={text}"), "24"
        yield get(f"/?q={text}&system=both"), "24"
        yield get(f"/search?q=a&system={text}"), "4"
        yield get(f"/?q=a&collection={text}"), "4"
    counts = ["-1", "0", "101", "1e9", "9" * 5000, "NaN", "Infinity", "0x10", "1.5", "", "true"]
    for count in counts:
        yield get(f"/search?q=a&k={count}"), "4"
    for index in ["-1", "9" * 4000, "9" * 5000, "NaN", "[]"]:
        yield get(f"/judge?query=x&index={index}"), "24"
    paths = ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/style.css/../x"]
    paths += [
        "/.git/config",
        "/static/..%5c..%5cwin.ini",
        "/judge.js%00.html",
        "/%",
        "/" + "a" * 9000,
    ]
    paths += ["http://evil.example/", "*", "/search;a=b", "/?" + "&".join(["system=x"] * 3000)]
    for path in paths:
        yield get(path), "4"
    for method in [b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"CONNECT", b"HEAD", b"BREW"]:
        yield get("/judge", method=method), "4"
        yield get("/search?q=a", method=method), "4"
    hosts = [b"evil.example", b"127.0.0.1.evil.example", b"", b"127.0.0.1@evil", b"[::1", b"a b"]
    hosts += [b"localhost:8000:1", b"\xff\xfe", b"127.0.0.1:abc", b"x" * 5000, b"127.0.0.1, x"]
    for host in hosts:
        yield get("/search?q=a", host=b"Host: " + host + b"\r\n"), "4"
    yield get("/search?q=a", host=b""), "4"
    yield get("/search?q=a", host=HOST + HOST), "4"
    origins = [b"http://evil.example", b"null", b"https://127.0.0.1", b"http://127.0.0.1.evil", b""]
    form = b"grade=add&text=hostile"
    for origin in origins:
        yield post(form, b"Origin: " + origin), "4"
    bodies = [
        *(b"", b"grade=add&text=", b"grade=7", b"grade=-1&query=x&passage=y", b"\xff\xfe\x00"),
        *(b"grade=last", b"grade=back", b"grade=back&query=x&index=-5", b"grade=2&index=NaN"),
        *(b"a=b&" * 400, b"x" * 40000, b"grade=add&text=" + b"a" * 2001, b"grade=%d9%a3"),
        *(b'{"grade": 2}', b"grade=add&text=%00" * 20, b"index=" + b"9" * 5000),
    ]
    for body in bodies:
        yield post(body), "34"
    yield post(form, b"Content-Length: 5"), "4"
    yield post(b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n", b"Transfer-Encoding: chunked"), "4"
    yield get("/judge", b"Transfer-Encoding: chunked", method=b"POST", body=b"zz\r\n"), "4"
    yield get("/judge", b"Transfer-Encoding: chunked, gzip", method=b"POST"), "45"
    headers = [
        b"X: " + b"a" * 40000,
        b"X" * 40000,
        b"Bad Header: x",
        b": x",
        b"X: a\x00b",
        b" folded",
    ]
    headers += [
        b"Content-Length: -1",
        b"Content-Length: 1e3",
        b"Range: bytes=0-18446744073709551615",
    ]
    headers += [b"Cookie: " + b"a=b;" * 3000, b"Expect: 100-continue", b"Accept: " + b"*/*," * 900]
    headers += [
        b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: eA==",
        b"A:\tb\x0bc",
    ]
    for header in headers:
        yield get("/systems", header), "24"
    versions = [b"HTTP/0.9", b"HTTP/2.0", b"HTTP/9.9", b"HTTP", b"", b"ICY/1.0"]
    for version in versions:
        yield get("/systems", version=version), "245"
    garbage = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    garbage += [
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"A" * 40000,
    ]
    garbage += [b"GET /\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n", b"GET / HTTP/1.1\nHost:x\n\n"]
    for line in garbage:
        yield line, "24"


def answer(port, request):
    """Send bytes; return the whole answer, empty if the connection is closed without one."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            connection.sendall(request)
            while piece := connection.recv(1 << 16):
                found += piece
                head, _, body = found.partition(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head)
                if length and (len(body) >= int(length[1]) or request.startswith(b"HEAD")):
                    break
        except (BrokenPipeError, ConnectionResetError):
            pass
    return found


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_hundred_hostile_requests_change_nothing(server, tmp_path):
    process, port = server
    before = files(tmp_path)
    many = list(requests())
    assert len(many) >= 200
    answered = 0
    for request, allowed in many:
        found = answer(port, request)
        answered += bool(found)
        status = found[9:12].decode("latin-1")
        assert not found or status[:1] in allowed, (request[:120], found[:200])
        assert b"Traceback" not in found and (b"text/html" not in found or b"<svg" not in found)
        assert b"\r\nset-cookie" not in found.partition(b"\r\n\r\n")[0].lower()
    assert answered >= 200
    assert process.poll() is None and files(tmp_path) == before
    assert b'"p0"' in answer(port, get("/search?q=a"))


def test_more_connections_than_allowed_are_refused_until_others_end(server):
    """All but the last have sent half of a request."""
    process, port = server
    address = ("127.0.0.1", port)
    half = get("/search?q=a")[:-2]
    open_ones = [socket.create_connection(address) for _ in range(connections.CONNECTIONS - 1)]
    for connection in open_ones:
        connection.sendall(half)
    assert b" 503 " in answer(port, get("/search?q=a"))
    open_ones.pop().close()
    assert b'"p0"' in wait_for(lambda: answer(port, get("/search?q=a")), seconds=60)
    for connection in open_ones:
        connection.close()
    assert process.poll() is None


def wait_for(ask, seconds):
    end = time.monotonic() + seconds
    for pause in itertools.repeat(0.1):
        found = ask()
        if b" 200 " in found or time.monotonic() > end:
            return found
        time.sleep(pause)
    return b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(server, number):
    process, port = server
    idle = socket.create_connection(("127.0.0.1", port))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/systems") as reply:
        assert reply.status == 200
    process.send_signal(number)
    assert process.wait(90) == 0 and process.stdout.read() == "ended\n"
    idle.close()
