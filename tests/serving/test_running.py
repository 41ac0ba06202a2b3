"""`./run search` asks the running server of its results folder, if that has read the same files."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from cdmae.serving import running


class Handler(BaseHTTPRequestHandler):
    """Answers like the server, and records the paths."""

    paths = []

    def do_GET(self):  # noqa: N802
        self.paths.append(self.path)
        body = json.dumps({"fingerprint": "same", "passages": 3, "hits": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def url(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # is not asked for this machine
    Handler.paths.clear()
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def ask(folder, fingerprint="same"):
    return running.ask(folder, fingerprint, q="a b&c", system="bm25", collection="docs", k=5)


def test_a_running_server_is_asked_and_others_are_not(tmp_path, url, capsys):
    assert ask(tmp_path) is None and not Handler.paths
    with running.announced(tmp_path, url):
        assert ask(tmp_path)["passages"] == 3
        assert Handler.paths == ["/search?q=a+b%26c&system=bm25&collection=docs&k=5"]
        assert ask(tmp_path, "other") is None and "restart it" in capsys.readouterr().err
        (tmp_path / running.FILE).write_text(json.dumps({"url": url, "host": "another-machine"}))
        assert ask(tmp_path) is None
        (tmp_path / running.FILE).write_text(json.dumps({"url": "http://127.0.0.1:9/"}))
        assert ask(tmp_path) is None
    with running.announced(tmp_path, "http://127.0.0.1:9/"):
        assert ask(tmp_path) is None  # it was killed
    assert not (tmp_path / running.FILE).exists()


def test_a_fingerprint_follows_settings_and_files(tmp_path):
    folder = tmp_path / "docs"
    (tmp_path / "index").mkdir()
    folder.mkdir()
    for path in (tmp_path / "index/segment", folder / "passages.parquet"):
        path.write_text("a")

    def found(**settings):
        part = {"index": str(tmp_path / "index"), "k1": 0.9, "parts": [], **settings}
        return running.fingerprint({"parts": [part], "weights": [1.0]}, folder)

    first = found()
    assert found() == first and found(k1=1.2) != first
    (tmp_path / "index/segment").write_text("ab")
    second = found()
    assert second != first
    (folder / "passages.parquet").write_text("abc")
    assert found() != second
