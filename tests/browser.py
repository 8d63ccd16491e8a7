"""A real Chromium on two pipes: what a reader's browser makes of a page. No driver, no port, standard library only."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIMEOUT_S: Final = 60.0
END: Final = b"\0"
FIRST_ERROR_STATUS: Final = 400


def browser_program() -> str | None:
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """Speaks the DevTools protocol, one JSON object between zero bytes, over file descriptors 3 and 4 of the child."""

    def __init__(self, process: subprocess.Popen[bytes], to_child: int, from_child: int) -> None:
        self._process, self._to_child, self._from_child = process, to_child, from_child
        self._ids = itertools.count(1)
        self._buffer = b""
        self.events: list[Mapping[str, Any]] = []

    @classmethod
    @contextmanager
    def started(cls, profile: Path) -> Iterator[Self]:
        program = browser_program()
        if program is None:
            raise FileNotFoundError(f"none of {', '.join(PROGRAMS)} is installed")
        child_in, to_child = os.pipe()
        from_child, child_out = os.pipe()
        shell = f'exec "$@" 3<&{child_in} 4>&{child_out}'
        arguments = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
            "--disable-background-networking", "--no-first-run", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *arguments],
            pass_fds=(child_in, child_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(child_in)
        os.close(child_out)
        os.set_blocking(from_child, False)
        browser = cls(process, to_child, from_child)
        try:
            yield browser
        finally:
            with suppress(OSError):
                browser.call("Browser.close")
            os.close(to_child)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(from_child)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Mapping[str, Any]:
        """Raises RuntimeError with what the browser said against it."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._to_child, json.dumps(message).encode() + END)
        while True:
            answer = self.read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: Mapping[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def read(self, timeout_s: float = TIMEOUT_S) -> Mapping[str, Any]:
        until = time.monotonic() + timeout_s
        while END not in self._buffer:
            if self._process.poll() is not None:
                raise OSError(f"the browser ended with {self._process.returncode}")
            if time.monotonic() > until:
                raise TimeoutError(f"the browser said nothing for {timeout_s} s")
            try:
                self._buffer += os.read(self._from_child, 1 << 20)
            except BlockingIOError:
                time.sleep(0.005)
        message, _, self._buffer = self._buffer.partition(END)
        parsed: Mapping[str, Any] = json.loads(message)
        return parsed


@dataclass(kw_only=True)
class Tab:
    """One page at one size. ``requests`` and ``complaints`` grow as it is used."""

    browser: Browser
    session: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def opened(
        cls, browser: Browser, address: str, *, width: int, height: int = 900, scripts: bool = True, dark: bool = False
    ) -> Self:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = cls(browser=browser, session=session)
        for domain in ("Page", "Network", "Runtime", "Log"):
            tab.call(f"{domain}.enable")
        tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        tab.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        scheme = "dark" if dark else "light"
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        tab.call("Page.navigate", url=address)
        tab.wait_for("document.readyState === 'complete'")
        return tab

    def call(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        result = self.browser.call(method, self.session, **parameters)
        self._sort_events()
        return result

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is worth there. Raises RuntimeError when it throws."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait_for(self, expression: str, timeout_s: float = TIMEOUT_S) -> None:
        until = time.monotonic() + timeout_s
        while not self._is_true(expression):
            if time.monotonic() > until:
                raise TimeoutError(f"not true after {timeout_s} s: {expression}")
            time.sleep(0.05)

    def _is_true(self, expression: str) -> bool:
        """False too while the tab goes to another page, of which nothing can be asked."""
        try:
            return bool(self.value(f"Boolean({expression})"))
        except RuntimeError as error:
            if "navigated" not in str(error):
                raise
            return False

    def move_to(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        self.value(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.value(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")
        self.click_at(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def click_at(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def picture(self, path: Path) -> Path:
        """The whole page, for a person to look at."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def pdf(self, path: Path) -> Path:
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))
        return path

    def close(self) -> None:
        self.call("Page.close")

    def _sort_events(self) -> None:
        events, self.browser.events = self.browser.events, []
        for event in events:
            if event.get("sessionId") != self.session:
                continue
            method, told = event["method"], event["params"]
            if method == "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            elif method == "Network.loadingFailed" and not told.get("canceled"):
                self.complaints.append(f"not loaded: {told['errorText']}")
            elif method == "Network.responseReceived" and told["response"]["status"] >= FIRST_ERROR_STATUS:
                self.complaints.append(f"{told['response']['status']}: {told['response']['url']}")
            elif method == "Runtime.exceptionThrown":
                self.complaints.append(str(told["exceptionDetails"].get("exception", told["exceptionDetails"])))
            elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                self.complaints.append(told["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                self.complaints.append(str([argument.get("value") for argument in told["args"]]))
