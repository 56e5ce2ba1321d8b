"""The page in a real browser: curves that grow, zoom and keys, the guesses as an animation, and both languages."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Page, browsing, needs_browser
from tests.served import served
from tests.unit.watch.test_run import seal, write_run

from bertwright.corpus.filter import REASONS
from bertwright.watch.app import watch_app

pytestmark = [pytest.mark.heavy, needs_browser]

VALUES = "[...document.querySelectorAll('.chart:not([hidden]) .legend')].map(e => e.textContent)"


def row(step: int, **further: Any) -> str:
    loss = {"mlm_loss": 2 + 6 * math.exp(-step / 300), "learning_rate": 1e-4, "tokens_per_second": 1000.0}
    place = {"time": "2026-11-29T08:00:00Z", "phase": 0, "step": step, "steps": 2000, "total_steps": step}
    return json.dumps({**place, "tokens_seen": step * 100, "seconds": step / 2, **loss, **further}) + "\n"


def write_guesses(folder: Path, words: list[str]) -> None:
    lines = []
    for step, word in enumerate(words):
        top = [{"token": word, "probability": 0.5}, {"token": "<b>x</b>", "probability": 0.1}]
        answers = [{"text": "The [MASK] <i>flows</i>.", "gold": "river", "top": top}]
        lines.append(json.dumps({"total_steps": 10 * step, "phase": 0, "step": 10 * step, "answers": answers}) + "\n")
    (folder / "train/guesses.jsonl").write_text("".join(lines))


def pixels(page: Page) -> int:
    """The number of pixels of the first chart that are not empty."""
    count = """(c => {
      const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
      return data.filter((value, i) => i % 4 === 3 && value).length;
    })(document.querySelector(".chart canvas"))"""
    found: int = page.value(count)
    return found


def test_curves_grow_while_one_looks_and_are_read_by_mouse_and_keys(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with served(watch_app([folder])) as listener, browsing(tmp_path / "profile") as page:
        page.size(1200, 900)
        page.open(listener.address)
        page.wait("document.querySelector('.state')?.textContent == 'not there yet'")
        assert "token" not in page.value("location.href") and "Nothing to draw yet" in page.text("#panel")
        write_run(folder)
        metrics = folder / "train/metrics.jsonl"
        metrics.write_text("".join(map(row, range(1, 1000))))
        page.wait("document.querySelectorAll('.chart').length == 3")
        page.wait(f"{VALUES}[0].startsWith('training 2.21')")
        before = pixels(page)
        with metrics.open("a") as file:
            file.write("".join(map(row, range(1000, 2001))) + '{"total_steps": 20')
        page.wait(f"{VALUES}[0].startsWith('training 2.007')")
        assert pixels(page) != before and "step 2,000 of 2,000" in page.text("#runs")
        # A line to read values at, on all charts, and closer.
        page.value("document.querySelector('.chart canvas').focus()")
        page.press("Home")
        page.wait(f"{VALUES}[0].startsWith('training 7.9')")
        page.press("+")
        page.wait("document.querySelector('button.small')?.textContent == 'Show everything'")
        page.press("ArrowRight")
        page.wait("document.querySelector('#announced').textContent.startsWith('steps ')")
        page.press("0")
        page.wait("document.querySelector('.bar .hint') != null")
        box = page.value("document.querySelector('.chart canvas').getBoundingClientRect().toJSON()")
        for kind, x in (("mousePressed", 200), ("mouseMoved", 260), ("mouseReleased", 260)):
            at = {"x": box["x"] + x, "y": box["y"] + 60, "button": "left", "buttons": 1, "clickCount": 1}
            page.tell("Input.dispatchMouseEvent", type=kind, **at)
        page.wait("document.querySelector('button.small')?.textContent == 'Show everything'")
        # A training that resumes from an earlier checkpoint.
        metrics.write_text("".join(map(row, range(1, 500))))
        page.wait("document.querySelector('#runs').textContent.includes('step 499 of 2,000')")
        page.click("button.small")
        page.wait(f"{VALUES}[0].startsWith('training 3.13')")
        assert not page.faults
        assert all(address.startswith(f"http://127.0.0.1:{listener.port}/") for address in page.asked)


def test_the_guesses_are_played_paused_and_chosen_by_keys(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    write_guesses(folder, ["the", "boat", "river"])
    with served(watch_app([folder])) as listener, browsing(tmp_path / "profile") as page:
        page.open(listener.address)
        page.click("#tab-guesses")
        page.wait("document.querySelector('.slot')?.textContent == 'river'")
        assert page.text(".sentence") == "The river <i>flows</i>.", "a text is a text"
        assert "3 of 3 checkpoints" in page.text(".place") and page.value("document.querySelector('.slot.hit') != null")
        page.value("document.querySelector('.player input').focus()")
        page.press("ArrowLeft")
        page.wait("document.querySelector('.slot').textContent == 'boat'")
        assert page.text(".place").startswith("step 10 ")
        page.press("ArrowLeft")
        page.press("Space")
        page.wait("document.querySelector('.primary').textContent == 'Pause'")
        page.wait("document.querySelector('.slot').textContent == 'river'")
        page.wait("document.querySelector('.primary').textContent == 'Play'")
        # One more checkpoint, while the newest is shown.
        write_guesses(folder, ["the", "boat", "river", "stream"])
        page.wait("document.querySelector('.slot').textContent == 'stream'")
        # Cut, because training was resumed.
        write_guesses(folder, ["the", "boat"])
        page.wait("document.querySelector('.slot').textContent == 'boat'")
        assert not page.faults


def test_thousands_of_checkpoints_are_some_hundred_frames(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    words = [f"w{i}" for i in range(3000)]
    write_guesses(folder, words)
    with served(watch_app([folder])) as listener, browsing(tmp_path / "profile") as page:
        page.open(listener.address)
        page.click("#tab-guesses")
        page.wait("document.querySelector('.slot')?.textContent == 'w2999'")
        assert int(page.value("document.querySelector('.player input').max")) == 188  # every 16th, and the last
        write_guesses(folder, [*words, "w3000", "w3001"])
        page.wait("document.querySelector('.slot').textContent == 'w3001'")
        assert int(page.value("document.querySelector('.player input').max")) == 188
        assert sum("/guesses?" in address for address in page.asked) <= 6


def test_all_tabs_in_both_languages_fit_a_narrow_screen(tmp_path: Path) -> None:
    folder, other = write_run(tmp_path / "run"), write_run(tmp_path / "other")
    seal(folder / "vocab", {"entries": 5}, "c" * 64)
    with served(watch_app([folder, other])) as listener, browsing(tmp_path / "profile", "hu") as page:
        page.size(360, 740, dark=True)
        page.open(listener.address)
        page.wait("document.querySelector('.state')?.textContent == 'tanul'")
        waits = {
            "curves": "document.querySelector('.chart') != null",
            "guesses": "document.querySelector('.line') != null",
            "corpus": "document.querySelector('.passage') != null",
            "vocabulary": "document.querySelector('.entries li') != null",
            "log": "document.querySelector('.log li') != null",
        }
        for name, shown in waits.items():
            page.click(f"#tab-{name}")
            page.wait(shown)
            wide = page.value("document.documentElement.scrollWidth")
            assert wide <= 360, (name, wide)
        page.press("ArrowRight")
        page.wait("document.activeElement.id == 'tab-curves'")
        page.click(".swatch")
        page.wait("document.querySelector('.swatch').getAttribute('aria-pressed') == 'false'")
        page.click("[data-language=en]")
        page.wait("document.querySelector('.state').textContent == 'training' && document.documentElement.lang == 'en'")
        assert not page.faults


def test_a_page_without_the_token_asks_for_it_and_one_without_a_server_waits(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    with served(watch_app([folder])) as listener, browsing(tmp_path / "profile") as page:
        page.open(listener.address.partition("#")[0])
        page.wait("document.querySelector('.trouble input') != null")
        page.value("document.querySelector('.trouble input').focus()")
        page.type(listener.token)
        page.press("Enter")
        page.wait("document.querySelector('.run') != null && document.querySelector('.trouble').hidden")
        # The server itself is not ended: another one might get its port.
        cut = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        page.tell("Network.emulateNetworkConditions", offline=True, **cut)
        page.wait("document.querySelector('.trouble').textContent.startsWith('The server does not answer')")
        assert page.text(".run h2") == "run", "what was known is still shown"
        page.tell("Network.emulateNetworkConditions", offline=False, **cut)
        page.wait("document.querySelector('.trouble').hidden")


def test_both_languages_say_the_same_things(tmp_path: Path) -> None:
    keys = r"""(async () => {
      const texts = await import("./texts.js");
      const holes = (said) => (said.match(/\{\w+\}/g) ?? []).sort().join("");
      const paths = (value, at) =>
        typeof value === "string" ? [at + holes(value)]
        : Array.isArray(value) ? [at + value.length]
        : Object.entries(value).flatMap(([key, inner]) => paths(inner, `${at}.${key}`));
      return ["en", "hu"].map((name) => (texts.choose(name), paths(texts.all(), "")));
    })()"""
    with served(watch_app([tmp_path])) as listener, browsing(tmp_path / "profile") as page:
        page.open(listener.address)
        page.wait("document.querySelector('.run') != null")
        english, hungarian = page.value(keys)
    translated = {name.removeprefix(".reasons.") for name in hungarian if name.startswith(".reasons.")}
    assert [name for name in hungarian if not name.startswith(".reasons.")] == english and len(english) > 80
    assert translated == set(REASONS)
