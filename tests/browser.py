"""Headless Chromium, driven by chromedriver's WebDriver protocol."""

import contextlib
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
MISSING = "" if CHROMIUM and DRIVER else "needs chromium and chromedriver (Debian: chromium-driver)"


class Browser:
    """A session; `close` ends the browser and its driver."""

    def __init__(self):
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
        port = ""
        while not port:
            found = re.search(r"successfully on port (\d+)", self.driver.stdout.readline())
            port = found[1] if found else ""
        self.url = f"http://127.0.0.1:{port}/session"
        options = {"binary": CHROMIUM, "args": ["--headless=new", "--no-sandbox", "--disable-gpu"]}
        logs = {"goog:loggingPrefs": {"browser": "ALL"}}
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, **logs}}
        self.url += "/" + self("", {"capabilities": wanted})["sessionId"]

    def __call__(self, path, body=None):
        """Send a command: POST with a body, GET without."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["value"]

    def open(self, url):
        self("/url", {"url": url})

    def script(self, text):
        """Return the value of an expression."""
        return self("/execute/sync", {"script": f"return {text}", "args": []})

    def errors(self):
        """Return the errors of the pages' scripts since the last call."""
        entries = self("/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def press(self, *keys):
        """Press keys one after the other, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def emulate(self, command, **parameters):
        """Send a command of Chromium's own protocol."""
        self("/goog/cdp/execute", {"cmd": f"Emulation.{command}", "params": parameters})

    def close(self):
        request = urllib.request.Request(self.url, method="DELETE")
        with contextlib.suppress(urllib.error.URLError, TimeoutError):
            urllib.request.urlopen(request, timeout=30).close()
        self.driver.kill()
        self.driver.wait()
        self.driver.stdout.close()
