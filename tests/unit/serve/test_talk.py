"""The modules of the page, under Node.js: sentences with blanks, the latest answer, and its texts in two languages."""

import json
import re
import shutil
import subprocess
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.processes import PATIENCE

ROOMS = Path(__file__).parents[3] / "src" / "bertwright"
TALK, SHARED = ROOMS / "serve" / "talk", ROOMS / "page" / "shared"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no Node.js")


def run(script: str, *modules: str, **given: Any) -> Any:
    """What a script, with names of the page's modules and values as constants, gives to `done`."""
    assert NODE
    imports = "".join(f'import * as {name} from "./{name}.js";\n' for name in modules)
    values = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
    code = f"{imports}{values}const done = (answer) => console.log(JSON.stringify(answer));\n{script}"
    with TemporaryDirectory() as folder:
        # The server gives the files of both folders as if they were in one.
        for each in (TALK, SHARED):
            shutil.copytree(each, folder, dirs_exist_ok=True)
        file = Path(folder) / "script.mjs"
        file.write_text(code, encoding="utf-8")
        ended = subprocess.run([NODE, file], capture_output=True, text=True, timeout=PATIENCE)
    assert not ended.returncode, ended.stderr
    return json.loads(ended.stdout)


@needs_node
def test_a_word_is_blanked_and_comes_back() -> None:
    given = "A róka az erdőben él, Éva-Mária 3 őze is."
    blanked, back, blanks = run(
        """
        const parts = (text) => sentence.partsOf(text).filter((part) => part.kind !== "gap");
        let now = { text, hidden: [] };
        const was = [];
        // From the last word to the first, and back: the order of the hidden words is that of the blanks.
        for (const each of parts(text).reverse()) was.push((now = sentence.toggled(now, each)));
        const blanked = now;
        while (parts(now.text).some((part) => part.kind === "blank")) {
          now = sentence.toggled(now, parts(now.text).findLast((part) => part.kind === "blank"));
        }
        done([blanked, now, was[0]]);
        """,
        "sentence",
        text=given,
    )
    assert blanked["text"] == "___ ___ ___ ___ ___, ___-___ ___ ___ ___."
    assert blanked["hidden"] == ["A", "róka", "az", "erdőben", "él", "Éva", "Mária", "3", "őze", "is"]
    assert back == {"text": given, "hidden": []}
    assert blanks == {"text": "A róka az erdőben él, Éva-Mária 3 őze ___.", "hidden": ["is"]}


@needs_node
def test_blanks_keep_their_words_while_the_text_is_edited() -> None:
    steps = [
        ("A ___ az ___ él.", ["róka", "erdőben"]),
        ("A kis ___ az ___ él.", ["róka", "erdőben"]),  # before both
        ("A kis ___ nem az ___ él.", ["róka", "erdőben"]),  # between them
        ("A kis ____ nem az ___ él.", ["róka", "erdőben"]),  # a longer blank
        ("A kis ____ __ nem az ___ él.", ["róka", None, "erdőben"]),  # a new one
        ("A kis ____ __ nem az ___ él. ___", ["róka", None, "erdőben", None]),  # another one, at the end
        ("A kis nem az ___ él. ___", ["erdőben", None]),  # without the first two
        ("Egészen más.", []),
    ]
    got = run(
        """
        let now = { text: steps[0][0], hidden: steps[0][1] };
        done(steps.map(([text]) => (now = sentence.edited(now, text)).hidden));
        """,
        "sentence",
        steps=steps,
    )
    assert got == [hidden for _, hidden in steps]


@needs_node
def test_lines_of_recipes_are_read_and_sent_with_the_models_mask() -> None:
    lines = ["The [MASK=fox] 🦊 sleeps [MASK].", "___ and [MASK=b].", "<mask> x", "no blank"]
    typed = "[MASK] and __, <mask> or [mask] <b>"
    got = run(
        """
        done(lines.map((line) => {
          const { text, hidden } = sentence.read(line);
          const { text: sent, places } = sentence.asked(sentence.partsOf(text), "[MASK]");
          const cut = places.map(({ begin, end }) => [...sent].slice(begin, end).join(""));
          return { text, hidden, sent, whole: cut.join("") === sent };
        }).concat(sentence.asked(sentence.partsOf(typed), "[MASK]").text));
        """,
        "sentence",
        lines=lines,
        typed=typed,
    )
    assert got.pop() == "[MASK] and [MASK], [MASK] or [mask] <b>"
    assert [(each["text"], each["hidden"], each["sent"]) for each in got] == [
        ("The ___ 🦊 sleeps ___.", ["fox", None], "The [MASK] 🦊 sleeps [MASK]."),
        ("___ and ___.", [None, "b"], "[MASK] and [MASK]."),
        ("___ x", [None], "[MASK] x"),
        ("no blank", [], "no blank"),
    ]
    assert all(each["whole"] for each in got)


@needs_node
def test_a_guess_takes_the_place_of_a_blank_and_a_piece_continues_its_word() -> None:
    got = run(
        """
        const now = { text: "A ház ___ szép ___.", hidden: ["nagyon", null] };
        const [first, second] = sentence.partsOf(now.text).filter((part) => part.kind === "blank");
        done([sentence.filled(now, first, "##ak"), sentence.filled(now, second, "kert"),
          sentence.toggled(now, second, "kert"), sentence.whole(now)]);
        """,
        "sentence",
    )
    assert got == [
        {"text": "A házak szép ___.", "hidden": [None]},
        {"text": "A ház ___ szép kert.", "hidden": ["nagyon"]},
        {"text": "A ház ___ szép kert.", "hidden": ["nagyon"]},
        {"text": "A ház nagyon szép ___.", "hidden": [None]},
    ]


@needs_node
def test_words_of_any_script_are_told_apart() -> None:
    texts = {
        "می\u200cخواهم آب": ["می\u200cخواهم", "آب"],
        "नमस्ते दुनिया": ["नमस्ते", "दुनिया"],
        "我爱你": ["我", "爱", "你"],
        "แมวกินปลา": ["แมว", "กิน", "ปลา"],
        "e\u0301t\u00e9, 3,5 km": ["e\u0301t\u00e9", "3", "5", "km"],
    }
    got = run(
        """
        done(texts.map((text) => {
          const parts = sentence.partsOf(text);
          const whole = parts.map((part) => part.text).join("") === text && parts.every(
            ({ begin, text: { length } }, i) => i + 1 === parts.length || begin + length === parts[i + 1].begin);
          return whole && parts.filter((part) => part.kind === "word").map((part) => part.text);
        }));
        """,
        "sentence",
        texts=list(texts),
    )
    assert got == list(texts.values())


@needs_node
def test_only_the_latest_question_is_answered() -> None:
    got = run(
        """
        const { ask, stop } = latest.latest();
        const told = [], asked = [], aborted = [];
        const wait = (time) => new Promise((go) => setTimeout(go, time));
        const question = (name, time, delay = 0) => ask(delay, async (signal) => {
          asked.push(name);
          signal.addEventListener("abort", () => aborted.push(name));
          await wait(time);
          if (name === "wrong") throw new Error(name);
          return name;
        }, (answer) => told.push(answer), (error) => told.push(`error ${error.message}`));
        question("typed over", 0, 50);
        question("slow", 60);
        await wait(20);
        question("quick", 1);
        await wait(90);
        question("wrong", 1);
        await wait(20);
        question("stopped", 20);
        await wait(5);
        stop();
        await wait(30);
        done({ told, asked, aborted });
        """,
        "latest",
    )
    assert got == {
        "told": ["quick", "error wrong"],
        "asked": ["slow", "quick", "wrong", "stopped"],
        # What has been answered is aborted without effect.
        "aborted": ["slow", "quick", "wrong", "stopped"],
    }


@needs_node
def test_the_page_says_the_same_in_both_languages() -> None:
    english, hungarian = run("done([texts.LANGUAGES.en, texts.LANGUAGES.hu]);", "texts")
    assert english.keys() == hungarian.keys()
    for key, text in english.items():
        assert type(text) is type(hungarian[key]), key
        if isinstance(text, str):
            assert text != hungarian[key] or key == "tokenField", key
            names = [sorted(set(re.findall(r"\{(\w+)\}", each))) for each in (text, hungarian[key])]
            assert names[0] == names[1], key
        else:
            assert len(text) == len(hungarian[key]), key
    for key in ("leads", "samples"):
        assert english[key].keys() == hungarian[key].keys()
    code = "".join(file.read_text(encoding="utf-8") for file in TALK.glob("*.js") if file.name != "texts.js")
    page = (TALK / "talk.html").read_text(encoding="utf-8")
    used = {*re.findall(r'"(\w+)"', code), *re.findall(r'data-text="(\w+)"', page)}
    assert not english.keys() - used
    said = {*re.findall(r'\bsay\("(\w+)"', code), *re.findall(r'data-text="(\w+)"', page)}
    assert not said - english.keys()


def test_the_page_loads_nothing_from_elsewhere_and_makes_no_markup_of_texts() -> None:
    folders = (TALK, SHARED, ROOMS / "watch" / "page")
    for file in chain.from_iterable(folder.glob(f"*.{kind}") for folder in folders for kind in ("js", "html", "css")):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org/)", text), file
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(", text), (
            file
        )
        assert not re.search(r"<[^>]* (on\w+|style)=", text) or file.suffix == ".js", file
