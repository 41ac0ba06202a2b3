"""Load `./run serve` with clients that ask without a pause, next to `./run search`.

    python -m benchmarks.serving --configfile mine.yaml     a finished run; half a minute
    python -m benchmarks.serving --clients 8 --seconds 10

Each client keeps one connection of the loopback address, and asks the next query as soon as it has
an answer. The clients share the processor cores with the server. The queries belong to the first
evaluated split. Memory is the server's peak, next to the estimate that it printed before loading.
The processor time of a query counts only the server. Unlike latency, it hardly depends on other
work of the machine.
"""

from __future__ import annotations

import argparse
import atexit
import http.client
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from benchmarks.tables import table
from cdmae.collections.store import read_queries
from cdmae.commands.answering import askable
from cdmae.commands.configs import configured
from cdmae.config import seeds, splits
from cdmae.layout import place

RUN = [sys.executable, "-m", "cdmae"]


def start(configs: list[str]) -> tuple[subprocess.Popen, str, str]:
    """Start a server; return it, its address, and the memory that it expects to use."""
    command = [*RUN, "serve", "--port", "0", *configs]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    expected = ""
    for line in process.stderr:
        found = re.search(r"about (.*) of memory", line)
        expected = found[1] if found else expected
        url = re.search(r"open (\S+) in a browser", line)
        if url:
            return process, url[1], expected
    raise SystemExit(line)


def client(
    address: str, system: str, collection: str, queries: list[str], end: float
) -> list[float]:
    """Ask until the time `end`; return the seconds of each answer."""
    connection = http.client.HTTPConnection(address)
    seconds = []
    number = 0
    while time.perf_counter() < end:
        asked = {"q": queries[number % len(queries)], "system": system, "collection": collection}
        begun = time.perf_counter()
        connection.request("GET", "/search?" + urlencode(asked))
        reply = connection.getresponse()
        answer = json.loads(reply.read())
        seconds.append(time.perf_counter() - begun)
        assert reply.status == 200, answer
        assert answer["system"] == system
        number += 1
    connection.close()
    return seconds


def load(
    address: str,
    system: str,
    collection: str,
    queries: list[str],
    clients: int,
    seconds: float,
) -> np.ndarray:
    """Let several clients ask at a time; return the seconds of all answers."""
    answers: list[float] = []
    end = time.perf_counter() + seconds

    def work(number: int) -> None:
        own = queries[number::clients]
        answers.extend(client(address, system, collection, own, end))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.array(answers)


def search(configs: list[str], system: str, collection: str, query: str) -> dict[str, str]:
    """Return the seconds of `./run search`: wall-clock, and of the processor."""
    command = [*RUN, "search", query, "--system", system, "--collection", collection, *configs]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": f"{wall:.2f}", "cpu-s": f"{cpu:.2f}"}


def main() -> None:
    """Measure the server under load and `./run search`, and print a table for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configfile", nargs="+", default=[])
    parser.add_argument("--system", nargs="+", default=[])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    files = [str(Path(file).resolve()) for file in options.configfile]
    configs = ["--configfile", *files] if files else []
    config = configured(files)
    collection, split = splits.roles(config).deciding
    folder = place(config.results, "collection", collection=collection)
    queries = read_queries(folder, split)["text"].tolist()
    process, url, expected = start(configs)
    atexit.register(process.kill)  # the server must not outlive a failed measurement
    address = urlsplit(url).netloc
    asked = options.system or seeds.first(askable(config))  # as served
    rows = []
    for system in asked:
        load(address, system, collection, queries, options.clients, 4)  # Java compiles its code
        before = processor_seconds(process.pid)
        seconds = load(address, system, collection, queries, options.clients, options.seconds)
        cpu = (processor_seconds(process.pid) - before) / len(seconds)
        p50, p95 = np.quantile(seconds, [0.5, 0.95]).tolist()
        row = {"": system, "queries/s": f"{len(seconds) / options.seconds:.0f}"}
        for name, value in (("p50 ms", p50), ("p95 ms", p95), ("cpu-ms a query", cpu)):
            row[name] = f"{1000 * value:.0f}"
        rows.append(row)
    peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
    used = f"peak memory {int(peak[1]) / 2**20:.1f} GB, expected {expected}"
    print(f"{options.clients} clients, {collection}; {used}\n{table(rows)}\n", flush=True)
    last = asked[-1]
    commands = [{"": "asks the server", **search(configs, last, collection, queries[0])}]
    process.send_signal(signal.SIGTERM)
    process.wait()
    commands.append({"": "alone", **search(configs, last, collection, queries[0])})
    print(f"./run search with {last}\n{table(commands)}")


def processor_seconds(process: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
