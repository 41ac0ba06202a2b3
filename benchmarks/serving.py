"""Load `./run serve` with clients that ask without a pause; each answer must be right.

    python -m benchmarks.serving --configfile mine.yaml     a finished run; half a minute
    python -m benchmarks.serving --clients 8 --seconds 10

Each client keeps one connection of the loopback address, and asks the next query as soon as it has
an answer. The clients share the processor cores with the server. The queries are those of the split
that decides. The processor time of a query counts only the server.
"""

from __future__ import annotations

import argparse
import atexit
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
import psutil
from tabulate import tabulate

from benchmarks.forms import RESULTS, record
from cdmae.collections.store import read_queries
from cdmae.commands.answering import askable
from cdmae.commands.configs import configured
from cdmae.config import seeds, splits
from cdmae.layout import place


def started(configs: list[str]) -> tuple[subprocess.Popen[str], str]:
    """Start a server; return its process and its host with the port."""
    command = [sys.executable, "-m", "cdmae", "serve", "--port", "0", *configs]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    line = ""
    for line in process.stderr:
        url = re.search(r"open (\S+) in a browser", line)
        if url:
            return process, urlsplit(url[1]).netloc
    raise SystemExit(line)


def client(address: str, asked: dict[str, str], queries: list[str], end: float) -> list[float]:
    """Ask until the time `end`; return the seconds of each answer."""
    connection = http.client.HTTPConnection(address)
    seconds = []
    while time.perf_counter() < end:
        query = queries[len(seconds) % len(queries)]
        begun = time.perf_counter()
        connection.request("GET", "/search?" + urlencode({"q": query, **asked}))
        reply = connection.getresponse()
        answer = json.loads(reply.read())
        seconds.append(time.perf_counter() - begun)
        if reply.status != 200 or answer["query"] != query:
            raise SystemExit(f"wrong answer: {answer}")
    connection.close()
    return seconds


def load(
    address: str, asked: dict[str, str], queries: list[str], clients: int, seconds: float
) -> np.ndarray:
    """Let several clients ask at a time; return the seconds of all answers."""
    answers: list[float] = []
    end = time.perf_counter() + seconds

    def work(number: int) -> None:
        answers.extend(client(address, asked, queries[number::clients], end))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.array(answers)


def main() -> None:
    """Measure the server under load, and print a table of its systems."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configfile", nargs="+", default=[])
    parser.add_argument("--system", nargs="+", default=[])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--output", type=Path, default=RESULTS, help="JSON lines to add rows to")
    given = parser.parse_args()
    files = [str(Path(file).resolve()) for file in given.configfile]
    config = configured(files)
    (collection, split), _ = splits.roles(config)
    folder = place(config.results, "collection", collection=collection)
    queries = read_queries(folder, split)["text"].tolist()
    process, address = started(["--configfile", *files] if files else [])
    server = psutil.Process(process.pid)
    atexit.register(process.kill)  # the server must not outlive a failed measurement
    rows = []
    for system in given.system or seeds.first(askable(config)):  # as served
        asked = {"system": system, "collection": collection}
        load(address, asked, queries, given.clients, 4)  # Java compiles its code
        before = sum(server.cpu_times()[:2])  # of the user and of the system
        seconds = load(address, asked, queries, given.clients, given.seconds)
        cpu = (sum(server.cpu_times()[:2]) - before) / len(seconds)
        row = {"system": system, "queries_per_s": round(len(seconds) / given.seconds)}
        row |= {f"p{at}_ms": round(1000 * np.quantile(seconds, at / 100)) for at in (50, 95)}
        rows.append(row | {"cpu_ms": round(1000 * cpu, 1)})
    process.send_signal(signal.SIGTERM)
    process.wait()
    work = f"{given.clients} clients, {collection}"
    print(f"{work}\n{tabulate(rows, 'keys')}")
    record(given.output, [{"task": "serving", "work": work} | row for row in rows])


if __name__ == "__main__":
    main()
