"""A headless Chromium that a test drives as a person would: keys, clicks, sizes, themes, pictures of what is seen.

It is spoken to over two pipes (`--remote-debugging-pipe`), so nothing listens, and no package is needed.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

import pytest
from tests.processes import PATIENCE

from bertwright.core.subprocess_group import subprocess_group

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
_FLAGS = (
    "--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-quic", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe", "--no-default-browser-check",
)  # fmt: skip
# Chromium reads commands from descriptor 3 and writes answers to 4, which the pipes themselves may occupy.
_START = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
for each in (3, 4):  # which they may have been before, and then they would be closed
    os.set_inheritable(each, True)
os.execv(sys.argv[3], sys.argv[3:])
"""
_KEYS = {
    "Enter": ("Enter", 13, "\r"), "Tab": ("Tab", 9, ""), "Space": ("Space", 32, " "), "Backspace": ("Backspace", 8, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowRight": ("ArrowRight", 39, ""), "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowDown": ("ArrowDown", 40, ""), "Home": ("Home", 36, ""), "End": ("End", 35, ""), "Escape": ("Escape", 27, ""),
}  # fmt: skip
_FLAWS = """
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, under) =>
    top.map((each, i) => (i < 3 ? each * top[3] / 255 + under[i] * (1 - top[3] / 255) : 255));
  const behind = (e) => {
    const under = e.parentElement ? behind(e.parentElement) : [255, 255, 255, 255];
    const bar = e.parentElement?.querySelector(":scope > .share");
    const below = bar && bar !== e ? over(rgba(getComputedStyle(bar).backgroundColor), under) : under;
    return over(rgba(getComputedStyle(e).backgroundColor), below);
  };
  const light = (c) => c.slice(0, 3)
    .map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const flaws = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.data, e = walk.currentNode.parentElement;
    if (!text.trim() || !e.checkVisibility() || e.closest("option, script, style, [aria-hidden=true]")) continue;
    const ground = behind(e), ink = over(rgba(getComputedStyle(e).color), ground);
    const [low, high] = [light(ink), light(ground)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) flaws.push(`contrast ${contrast.toFixed(2)}: ${text}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) flaws.push("wider than the window");
  for (const e of document.querySelectorAll("button, summary, select, a, input, textarea")) {
    if (e.checkVisibility() && e.getBoundingClientRect().height < 18) flaws.push(`small: ${e.innerText}`);
  }
  return flaws;
})()
"""
_NAMED = ("button", "textbox", "combobox", "tab", "link", "searchbox", "checkbox", "slider")


class Page:
    """The one page of a browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer, self._number, self._session = b"", 0, ""
        self.faults: list[str] = []
        """What the page's scripts threw, and what its security policy blocked."""
        self.asked: list[str] = []
        """The address of every request."""
        self.anew()

    def anew(self) -> None:
        """Be a new page of a person who has visited nothing."""
        self._session = ""
        self.faults.clear()
        self.asked.clear()
        context = self.tell("Target.createBrowserContext", disposeOnDetach=True)["browserContextId"]
        target = self.tell("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(f"{domain}.enable")

    def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command of the DevTools protocol. Raises `AssertionError` if it is refused."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            got = self._read()
            if got.get("id") == self._number:
                assert "error" not in got, (method, got["error"])
                result: dict[str, Any] = got["result"]
                return result
            self._note(got.get("method", ""), got.get("params", {}))

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select([self._answers], [], [], PATIENCE)
            data = os.read(self._answers, 1 << 16) if ready else b""
            assert data, "the browser does not answer"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: str, given: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            thrown = given["exceptionDetails"]
            self.faults.append(thrown.get("exception", {}).get("description") or thrown["text"])
        elif event == "Log.entryAdded" and given["entry"]["source"] in ("security", "javascript"):
            self.faults.append(given["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.asked.append(given["request"]["url"])

    def open(self, address: str) -> None:
        """Go to an address, and wait until it has loaded."""
        self.tell("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def reload(self) -> None:
        """Load the page again."""
        self.value("window.isOld = true")
        self.tell("Page.reload")
        self.wait("!window.isOld && document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives, as JSON; of a promise, what it resolves to."""
        answer = self.tell("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (expression, answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true. Raises `AssertionError` with what the page shows, if it never is."""
        end = time.monotonic() + PATIENCE
        while not self.value(f"!!({expression})"):
            assert time.monotonic() < end, (expression, self.value("document.body?.innerText"), self.faults)
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """The visible text of the first element that matches."""
        shown: str = self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return shown

    def click(self, selector: str) -> None:
        """Click in the middle of the first element that matches, once there is one; again, if the page moved it away in
        between and the click did not reach it. Raises `AssertionError` if none reaches it."""
        chosen = f"document.querySelector({json.dumps(selector)})"
        reached = f"e => {{ missed &&= !{chosen}?.contains(e.target) }}"
        place = f"{chosen}.scrollIntoView({{block: 'center'}}), {chosen}.getBoundingClientRect().toJSON()"
        end = time.monotonic() + PATIENCE
        missed = True
        while missed:
            assert time.monotonic() < end, f"no click reaches {selector}"
            self.wait(chosen)
            box = self.value(
                f"window.missed = true, addEventListener('click', {reached}, {{capture: true, once: true}}), {place}"
            )
            at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "button": "left"}
            for kind in ("mousePressed", "mouseReleased"):
                self.tell("Input.dispatchMouseEvent", type=kind, clickCount=1, **at)
            missed = self.value("window.missed")  # undefined on a page that the click led to

    def press(self, *keys: str, shift: bool = False) -> None:
        """Press and release keys: names such as Enter, or characters."""
        for key in keys:
            # The number of a sign on a keyboard is not that of its character: 46, the full stop, is Delete.
            code, number, text = _KEYS.get(key) or ("", ord(key.upper()) if key.isalnum() else 0, key)
            name = " " if key == "Space" else key
            given = {"key": name, "code": code, "windowsVirtualKeyCode": number, "modifiers": 8 * shift}
            self.tell("Input.dispatchKeyEvent", type="keyDown", **given, **({"text": text} if text else {}))
            self.tell("Input.dispatchKeyEvent", type="keyUp", **given)

    def type(self, text: str) -> None:
        """Put a text where the cursor is, as an input method does."""
        self.tell("Input.insertText", text=text)

    def size(self, width: int, height: int, dark: bool = False) -> None:
        """Show the page in a window of so many pixels, in light or dark."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setDeviceMetricsOverride", **metrics)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.tell("Emulation.setEmulatedMedia", features=[theme, still])

    def flaws(self) -> list[str]:
        """What one would not see, reach or hear: text with less contrast than 4.5 to what is behind it, a page wider
        than the window, small buttons, and what has no name for those who listen."""
        seen: list[str] = self.value(_FLAWS)
        nodes = [each for each in self.tell("Accessibility.getFullAXTree")["nodes"] if not each["ignored"]]
        named = [each for each in nodes if each["role"]["value"] in _NAMED]
        nameless = [each["role"]["value"] for each in named if not each.get("name", {}).get("value", "").strip()]
        return [*seen, *(f"a {role} without a name" for role in nameless)]

    def picture(self, file: Path, whole: bool = True) -> None:
        """Write what is seen, or the whole page, to a PNG file."""
        data = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))


@contextmanager
def browsing(folder: Path, language: str = "en-US", network: bool = True) -> Iterator[Page]:
    """A browser in a language, with its profile in `folder`; it ends with the block. Without a `network` it finds no
    address."""
    assert BROWSER
    read_commands, commands = os.pipe()
    answers, write_answers = os.pipe()
    flags = [*_FLAGS, f"--user-data-dir={folder}", f"--lang={language}", f"--accept-lang={language}"]
    if not network:
        flags += ["--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9"]
    start = [sys.executable, "-c", _START, str(read_commands), str(write_answers), BROWSER, *flags, "about:blank"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        with subprocess_group(start, 0, pass_fds=(read_commands, write_answers), name="Chromium", **quiet):
            os.close(read_commands)
            os.close(write_answers)
            yield Page(commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
