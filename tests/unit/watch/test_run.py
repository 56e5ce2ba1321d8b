"""The state of runs in all conditions, and the answers of the server about them."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.rows import each_row
from tests.served import Answered, ask, served

from bertwright.watch.app import watch_app
from bertwright.watch.corpus import surprises
from bertwright.watch.run import GUESSES_AT_ONCE, LINES_AT_ONCE, runs_of

DATA = ("state", "curves", "row", "guesses", "log", "corpus", "dropped", "sentences", "vocabulary", "entries")
ANSWERS = [{"text": "The [MASK] .", "gold": "river", "top": [{"token": "river", "probability": 0.5}]}]


def pack(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstandard.ZstdCompressor().compress("".join(f"{line}\n" for line in lines).encode()))


def seal(folder: Path, counts: dict[str, Any], fingerprint: str = "a" * 64) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"fingerprint": fingerprint, "counts": counts, "seconds": 1.5}))


def write_run(folder: Path, rows: int = 40) -> Path:
    """A run that trains, with everything that a page shows."""
    documents = [
        {"reason": "upper", "title": f"Ő {i}", "url": "https://a.example/x", "text": "AZ MTA. " * 9} for i in range(25)
    ]
    pack(
        folder / "corpus/dropped/00000.jsonl.zst",
        [json.dumps(d, ensure_ascii=False) for d in documents] + ["{", "null"],
    )
    sentences = [f"A folyó partján {n} kacsa ült, és várta a reggelt." for n in range(60)]
    pack(folder / "corpus/shards/00000.txt.zst", [*sentences, "", "Ξ∮ẅ ∂ψ⊗ℏ «Ж» ЩЪЫ 0x7F♞ ①②③", "hosszú " * 90])
    dropped = {
        "dropped": {"upper": 25},
        "reasons": {"upper": "too many capitals"},
        "kept": 60,
        "documents": 85,
        "sentences": 62,
    }
    seal(folder / "corpus", dropped)
    seal(folder / "vocab", {"entries": 5, "fertility": 1.2, "unknown_rate": 0.01})
    (folder / "vocab/vocab.txt").write_text("[PAD]\n##ja\nfolyó\n7\nΩμέγα\n", encoding="utf-8")
    (folder / "train").mkdir()
    lines = [
        {"time": "2026-11-29T08:00:00Z", "phase": 0, "step": i, "steps": rows, "total_steps": i, "mlm_loss": 9 / i}
        for i in range(1, rows + 1)
    ]
    (folder / "train/metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    guesses = [
        {"total_steps": 10 * i, "phase": 0, "step": 10 * i, "answers": ANSWERS} for i in range(GUESSES_AT_ONCE + 9)
    ]
    (folder / "train/guesses.jsonl").write_text("".join(json.dumps(line) + "\n" for line in guesses))
    said = [{"time": "2026-11-29T08:00:00Z", "message": f"line {i}"} for i in range(LINES_AT_ONCE + 5)]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    return folder


@contextmanager
def watching(*folders: Path) -> Iterator[Any]:
    """`get(what, **query)`: the JSON of an answer."""
    with served(watch_app(folders)) as listener:

        def get(what: str, tag: str = "", **query: Any) -> Answered:
            words = "&".join(f"{key}={value}" for key, value in query.items())
            headers = {"if_none_match": tag} if tag else {}
            return ask(listener, f"/watch/data/{what}?{words}", **headers)

        yield get


def test_all_that_a_page_shows_of_a_run(tmp_path: Path) -> None:
    with watching(write_run(tmp_path / "run")) as get:
        (state,) = get("state").json["runs"]
        assert (state["name"], state["state"], state["rows"]["version"]) == ("run", "training", [0, 40])
        assert [stage["state"] for stage in state["stages"]] == ["done", "done", "none", "begun", "none", "none"]
        curves = get("curves", run=0, keys="mlm_loss", width=500).json
        assert len(curves["x"]) == 40 and curves["keys"]["mlm_loss"]["mean"][0] == 9.0
        assert get("row", run=0, at=7.3).json["total_steps"] == 7
        first = get("guesses", run=0, begin=0).json
        rest = get("guesses", run=0, begin=len(first["rows"])).json
        assert len(first["rows"]) + len(rest["rows"]) == first["version"][1] == GUESSES_AT_ONCE + 9
        assert first["rows"][2] == {
            "step": 20,
            "phase": 0,
            "answers": [{"text": "The [MASK] .", "gold": "river", "top": [["river", 0.5]]}],
        }
        newest, oldest = get("log", run=0, page=0).json, get("log", run=0, page=1).json
        assert newest["lines"][-1]["message"] == f"line {LINES_AT_ONCE + 4}" and newest["pages"] == 2
        assert [line["message"] for line in oldest["lines"]] == [f"line {i}" for i in range(5)]
        assert get("corpus", run=0).json["counts"]["dropped"] == {"upper": 25}
        dropped = get("dropped", run=0, reason="upper", page=2).json
        assert dropped["count"] == 25 and [item["title"] for item in dropped["items"]] == [
            f"Ő {i}" for i in range(20, 25)
        ]
        longest, strangest = (get("sentences", run=0, kind=kind).json["items"][0] for kind in ("longest", "strangest"))
        assert longest["characters"] == 630 and strangest["text"].startswith("Ξ∮ẅ") and strangest["bits"] > 2
        words = get("vocabulary", run=0).json
        assert words["entries"] == 5 and words["continuations"] == 1 and words["counts"]["fertility"] == 1.2
        assert {script["name"]: script["entries"] for script in words["scripts"]} == {
            "Latin": 2,
            "special": 1,
            "digits": 1,
            "Greek": 1,
        }
        assert get("entries", run=0, script="Latin", find="foly%C3%B3").json["items"] == [[2, "folyó"]]


def test_an_answer_that_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    with watching(folder) as get:
        for what in DATA:
            first = get(what, run=0, keys="mlm_loss")
            again = get(what, run=0, keys="mlm_loss", tag=first.headers["etag"])
            assert (first.status, again.status, again.body) == (200, 304, b""), what
        state = get("state")
        with (folder / "train/metrics.jsonl").open("a") as file:
            file.write('{"total_steps": 41}\n{"total_st')
        changed = get("state", tag=state.headers["etag"])
        assert changed.status == 200 and changed.json["runs"][0]["rows"]["version"] == [0, 41]


@each_row(
    ("made", "state"),
    [
        ([], "absent"),
        (["."], "empty"),
        ([".lock", "recipe.toml"], "empty"),
        ([".corpus.0123456789ab.draft/"], "preparing"),
        (["corpus/manifest.json"], "preparing"),
        (["corpus/manifest.json", "train/checkpoints/"], "training"),
        (["train/manifest.json"], "trained"),
        (["train/manifest.json", "export/manifest.json"], "finished"),
    ],
)
def test_a_run_is_shown_however_far_it_is(made: list[str], state: str, tmp_path: Path) -> None:
    folder = tmp_path / f"{state} {len(made)} {''.join(made)[:5].strip('./')}"
    for name in made:
        path = folder / name
        (path if name.endswith(("/", ".")) else path.parent).mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text('{"fingerprint": "f"}')
    with watching(folder) as get:
        (found,) = get("state").json["runs"]
        assert found["state"] == state and not found["rows"]["last"]
        assert all(get(what, run=0).status == 200 for what in DATA)


def test_a_page_that_is_there_before_its_run_shows_it_when_it_comes(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with watching(folder) as get:
        assert get("state").json["runs"][0]["state"] == "absent"
        assert (
            get("vocabulary", run=0).json["entries"] == 0 and get("dropped", run=0, reason="upper").json["count"] == 0
        )
        write_run(folder)
        assert get("state").json["runs"][0]["state"] == "training"
        assert (
            get("vocabulary", run=0).json["entries"] == 5 and get("dropped", run=0, reason="upper").json["count"] == 25
        )
        # Made again with other settings: the old stage is moved aside.
        (folder / "vocab").rename(folder / "vocab.0123456789ab")
        seal(folder / "vocab", {}, "b" * 64)
        (folder / "vocab/vocab.txt").write_text("one\n")
        assert get("state").json["runs"][0]["stages"][1]["aside"] == 1
        assert get("vocabulary", run=0).json["entries"] == 1
        shutil.rmtree(folder)
        assert get("state").json["runs"][0]["state"] == "absent"


@each_row(
    "damage",
    [
        b"",
        b"\0" * 99,
        b"{",
        b"null\n[]\n7\n",
        b'{"counts": 3}',
        b"\xff\xfe{}\n",
        b'{"answers": [1, {"top": 3}]}\n',
        b'{"total_steps": 1}\n{"total_steps": 2, "phase": 1}\n',
        b'{"total_steps": 1, "phase": 1e999}\n',
        b'{"seconds": 1e999, "counts": {"kept": 1e999}, "answers": [{"top": [{"probability": 1e999}]}]}\n',
    ],
)
def test_damaged_files_give_less_to_show_and_no_error(damage: bytes, tmp_path: Path) -> None:
    folder = write_run(tmp_path / damage.hex()[:20] / "run")
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        path.write_bytes(damage)
    with watching(folder) as get:
        assert {what: get(what, run=0).status for what in DATA} == dict.fromkeys(DATA, 200)


def test_questions_of_any_kind_are_answered(tmp_path: Path) -> None:
    odd = [
        "-1",
        "99999999999999999999",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "x",
        "",
        "%00",
        "%F0%9F%92%A9",
        "1e-300",
        "a,b,,c",
    ]
    names = [
        "page",
        "begin",
        "end",
        "width",
        "rows",
        "generation",
        "size",
        "axis",
        "keys",
        "length",
        "at",
        "reason",
        "kind",
    ]
    with watching(write_run(tmp_path / "run")) as get:
        for what in DATA:
            for value in odd:
                assert get(what, run=0, **dict.fromkeys(names, value)).status == 200, (what, value)
        assert [get("curves", run=run).status for run in ("1", "-1", "x")] == [404, 404, 200]


def test_the_page_needs_no_token_and_has_no_other_files(tmp_path: Path) -> None:
    with served(watch_app([tmp_path])) as listener:
        page = ask(listener, "/watch/", authorization="")
        assert page.status == 200 and b"<!DOCTYPE html>" in page.body
        assert ask(listener, "/", authorization="").headers["location"].endswith("watch/")
        assert ask(listener, "/watch/watch.js", authorization="").headers["content-type"].startswith("text/javascript")
        for path in ("app.py", "../app.py", "..%2fapp.py", "%2e%2e/run.py", "page/watch.js", "data/", "data/nothing"):
            assert ask(listener, f"/watch/{path}", authorization="").status in (404, 401), path
        assert ask(listener, "/watch/data/state", authorization="").status == 401


def test_runs_have_names_that_differ() -> None:
    paths = [Path(f"/data/{name}") for name in ("hu/base/run", "hu/large/run", "de/base/run")]
    assert [run.name for run in runs_of(paths)] == ["hu/base/run", "hu/large/run", "de/base/run"]
    assert [run.name for run in runs_of(paths[:1])] == ["run"]
    assert [run.name for run in runs_of(paths[:1] * 2)] == ["data/hu/base/run"] * 2


def test_the_surprise_of_a_sentence_is_the_mean_of_its_pairs() -> None:
    sentences = ["abababab", "abababab", "abzbabab"]
    plain, again, odd = surprises(sentences)
    assert plain == again < odd
    assert surprises([]) == []


@pytest.mark.parametrize("kind", ["dropped", "shards"])
def test_examples_come_from_files_all_over_a_large_corpus(kind: str, tmp_path: Path) -> None:
    for i in range(40):
        line = {
            "dropped": json.dumps({"reason": "upper", "title": str(i), "text": "x"}),
            "shards": f"sentence number {i} of all",
        }
        pack(tmp_path / "run/corpus" / kind / f"{i:05d}.{'jsonl' if kind == 'dropped' else 'txt'}.zst", [line[kind]])
    with watching(tmp_path / "run") as get:
        query = {"reason": "upper"} if kind == "dropped" else {"kind": "longest"}
        found = get("dropped" if kind == "dropped" else "sentences", run=0, page=0, **query).json
        assert (found["read"], found["of"], found["count"]) == (12, 40, 12)
