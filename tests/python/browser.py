"""A browser without a screen, driven through a pipe by the protocol of its developer tools."""
import json
import os
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One page. ``errors``: what its scripts threw."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read, theirs_out = os.pipe()
        theirs_in, self.write = os.pipe()
        # The browser reads from 3 and writes to 4, whichever numbers the pipes have here.
        command = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, "browser", CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "--no-first-run", "--disable-extensions"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in), os.close(theirs_out)
        self.read = os.fdopen(read, "rb")
        self.number, self.session, self.errors = 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Runtime.enable")
        self.ask("Page.enable")

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        os.close(self.write)
        self.read.close()
        self.profile.cleanup()

    def message(self):
        text = bytearray()
        while (byte := self.read.read(1)) not in (b"\0", b""):
            text += byte
        if not text:
            raise RuntimeError("the browser ended")
        return json.loads(text)

    def ask(self, method, **params):
        self.number += 1
        call = {"id": self.number, "method": method, "params": params}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.write, json.dumps(call).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"])
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def value(self, expression):
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def open(self, address):
        self.ask("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def wait(self, expression, seconds=60):
        until = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < until, f"never true: {expression}; {self.errors}"
            time.sleep(0.05)

    def choose(self, selector, path):
        """Gives an <input type=file> a file."""
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.ask("DOM.setFileInputFiles", nodeId=node, files=[str(path)])
