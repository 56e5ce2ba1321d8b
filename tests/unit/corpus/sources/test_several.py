"""Sources of several formats, and of several files, in one corpus."""

import gzip
import hashlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import sha256_of
from bertwright.corpus.config import CorpusConfig, DeduplicateConfig, FilterConfig
from bertwright.corpus.run import identity, run
from bertwright.corpus.text import sentences

pytestmark = pytest.mark.heavy


def build(source: Any, out: Path, **settings: Any) -> Artifact:
    defaults = {"language": "hu", "workers": 1, "filter": FilterConfig(enabled=False), "shard_bytes": 1024}
    return run(CorpusConfig(source=source, **{**defaults, **settings}), out)


def said(number: int) -> str:
    return f"Ez a {number}. irat {number * 7919 % 1000} szóval. Második mondata {number * 104729 % 1000} más szó."


def test_sources_are_reported_apart(tmp_path: Path, export: Callable[..., bytes], bridges: list[str]) -> None:
    (tmp_path / "wiki.xml").write_bytes(export(bridges[:5]))
    (tmp_path / "rows").mkdir()
    files = {f"{i}.jsonl.gz": gzip.compress(json.dumps({"body": said(i)}).encode() + b"\n", mtime=0) for i in range(3)}
    for name, data in files.items():
        (tmp_path / "rows" / name).write_bytes(data)
    rows = {"path": str(tmp_path / "rows"), "text": "body", "weight": 2, "name": "hírek", "licence": "CC0-1.0"}
    counts = build([str(tmp_path / "wiki.xml"), rows], tmp_path / "out").counts
    wiki, news = counts["sources"]
    assert (wiki["name"], wiki["format"], wiki["files"], wiki["weight"], wiki["licence"], wiki["pages"]) == (
        "huwiki", "dump", 1, 1.0, "CC BY-SA", 5
    )  # fmt: skip
    assert (news["name"], news["format"], news["files"], news["weight"], news["licence"], news["documents"]) == (
        "hírek", "jsonl", 3, 2.0, "CC0-1.0", 3
    )  # fmt: skip
    assert news["sha256"] == sha256_of([hashlib.sha256(data).hexdigest() for data in files.values()])
    assert news["file_bytes"] == sum(map(len, files.values()))
    assert counts["documents"] == 8


@each_row("setting", [{"keep_disambiguation": True}, {"wikitext": {"maths": "tex"}}])
def test_settings_for_wikis_need_a_dump(
    tmp_path: Path, export: Callable[..., bytes], bridges: list[str], setting: dict[str, Any]
) -> None:
    (tmp_path / "wiki.xml").write_bytes(export(bridges[:5]))
    (tmp_path / "a.txt").write_text(said(1))
    with pytest.raises(RecipeError, match=rf"corpus\.{next(iter(setting))} applies only to dumps"):
        build(str(tmp_path / "a.txt"), tmp_path / "out", **setting)
    assert build([str(tmp_path / "a.txt"), str(tmp_path / "wiki.xml")], tmp_path / "out", **setting).counts["kept"] == 6


@each_row("settings", [{"near_documents": False, "similarity": 0.9}, {"paragraphs": False, "min_words": 5}])
def test_threshold_without_effect_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match="has no effect because"):
        DeduplicateConfig(**settings)


@pytest.mark.usefixtures("small_pieces")
def test_files_of_a_dump_in_parts(tmp_path: Path, export: Callable[..., bytes], bridges: list[str]) -> None:
    (tmp_path / "whole.xml").write_bytes(export(bridges))
    (tmp_path / "parts").mkdir()
    for i, name in enumerate(("huwiki-1.xml.xz", "huwiki-2.xml.xz")):
        (tmp_path / "parts" / name).write_bytes(lzma.compress(export(bridges[20 * i : 20 * i + 20])))
    whole = build(str(tmp_path / "whole.xml"), tmp_path / "one")
    parts = build(str(tmp_path / "parts" / "huwiki-*.xz"), tmp_path / "two", workers=2)
    assert whole.names() == parts.names()
    assert all(whole.file(name).read_bytes() == parts.file(name).read_bytes() for name in whole.names())
    assert parts.counts["sources"][0]["files"] == 2


def test_truncated_file_among_others_is_reported(tmp_path: Path) -> None:
    for i in range(3):
        data = b"".join(json.dumps({"text": said(10 * i + j)}).encode() + b"\n" for j in range(10))
        (tmp_path / f"{i}.jsonl").write_bytes(data[: -40 if i == 1 else None])
    cut = build(str(tmp_path / "*.jsonl"), tmp_path / "out").counts["sources"][0]["cut"]
    assert cut["after"].startswith("the document at byte") and cut["lost_bytes"] > 0


@each_row(
    ("key", "value"), [("name", "x"), ("weight", 2.0), ("licence", "x"), ("format", "text"), ("lines", "articles")]
)
def test_settings_of_a_source_decide_and_its_path_does_not(tmp_path: Path, key: str, value: Any) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(said(1))

    def fingerprint(file: str, **settings: Any) -> str:
        return identity(CorpusConfig(source={"path": str(tmp_path / file), **settings}, language="hu")).fingerprint

    assert fingerprint("a.txt") == fingerprint("b.txt") != fingerprint("a.txt", **{key: value})


def test_source_without_complete_document_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" \n\n")
    (tmp_path / "b.txt").write_text("\n")
    with pytest.raises(DataError, match="a.txt contains no complete document"):
        build(str(tmp_path / "*.txt"), tmp_path / "out")


def test_wrapped_files_are_one_document_each(tmp_path: Path) -> None:
    (tmp_path / "novels").mkdir()
    for i in range(3):
        (tmp_path / "novels" / f"{i}.txt").write_text(f"A {i}. regény hosszú\nmondata. Vége.\n\nÚj bekezdés.\n")
    made = build({"path": str(tmp_path / "novels"), "lines": "wrapped"}, tmp_path / "out")
    assert made.counts["documents"] == 3
    assert list(sentences(made))[:3] == ["A 0. regény hosszú mondata.", "Vége.", "Új bekezdés."]
