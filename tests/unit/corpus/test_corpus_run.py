import bz2
import hashlib
import json
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
import zstandard
from tests.rows import each_row

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import DataError, RecipeError
from bertwright.corpus.config import CorpusConfig, DeduplicateConfig, FilterConfig
from bertwright.corpus.dropped import read_dropped
from bertwright.corpus.language import check_source_language
from bertwright.corpus.run import identity, run
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.text import FACTS, TEXT, read_documents, sentences, shard_names

pytestmark = pytest.mark.heavy

GOLDEN = Path(__file__).parents[2] / "golden" / "corpus"
Build = Callable[..., bytes]
Packagings = Callable[..., dict[str, bytes]]
REPEATED = ("duplicates", "near_duplicates", "duplicate_paragraphs")


class Heard:
    """A log that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.done: list[tuple[float, float]] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def progress(self, stage: str, done: float, total: float, unit: str, **counts: float) -> None:
        self.done.append((done, total))

    def record(self, row: dict[str, Any]) -> None:
        raise AssertionError(row)


def corpus(path: Path, out: Path, log: Heard | None = None, **settings: Any) -> Artifact:
    defaults: dict[str, Any] = {
        "language": "hu",
        "workers": 1,
        "shard_bytes": 1024,
        "filter": FilterConfig(identify=False),
    }
    source = {"path": str(path), **{key: settings.pop(key) for key in ("lines", "format", "text") if key in settings}}
    return run(CorpusConfig(source=source, **{**defaults, **settings}), out, log or Heard())


def shards(artifact: Artifact) -> dict[str, str]:
    return {name: hashlib.sha256(artifact.file(name).read_bytes()).hexdigest() for name in artifact.names()}


def read_facts(artifact: Artifact, name: str) -> list[dict[str, Any]]:
    data = artifact.file(name.removesuffix(TEXT) + FACTS).read_bytes()
    return [json.loads(line) for line in zstandard.ZstdDecompressor().decompressobj().decompress(data).splitlines()]


def titles(artifact: Artifact) -> list[str]:
    return [facts["title"] for name in shard_names(artifact) for facts in read_facts(artifact, name)]


def test_golden(tmp_path: Path) -> None:
    """A small export with a redirect, a talk page, a duplicate and a stub, to its text and facts."""
    artifact = corpus(GOLDEN / "bridges.xml", tmp_path / "corpus", shard_bytes=2**20, filter=FilterConfig())
    (name,) = shard_names(artifact)
    text = "".join("\n".join(document) + "\n\n" for document in read_documents(artifact, name))
    assert text == (GOLDEN / "bridges.txt").read_text(encoding="utf-8")
    facts = [json.dumps(line, ensure_ascii=False) for line in read_facts(artifact, name)]
    assert "\n".join(facts) + "\n" == (GOLDEN / "bridges.jsonl").read_text(encoding="utf-8")
    counts = {key: value for key, value in artifact.counts.items() if key != "libraries"}
    assert counts == json.loads((GOLDEN / "bridges.counts.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("small_pieces")
def test_the_packaging_leaves_no_trace(
    tmp_path: Path, packagings: Packagings, bridges: list[str], repetitions: list[str]
) -> None:
    pages = [*bridges[:12], *repetitions, *bridges[12:25]]
    results = {}
    for name, data in packagings(pages).items():
        (tmp_path / name).write_bytes(data)
        artifact = corpus(tmp_path / name, tmp_path / f"{name} corpus")
        results[name] = shards(artifact)
        assert [artifact.counts[name] for name in REPEATED] == [1, 1, 1]
        assert [line["reason"] for line in read_dropped(artifact)] == ["duplicate", "near_duplicate"]
        assert not any(path.name.startswith(".") for path in artifact.path.rglob("*"))
    assert len(results["a.xml"]) > 8
    assert all(result == results["a.xml"] for result in results.values())


@pytest.mark.usefixtures("small_pieces")
def test_the_number_of_workers_leaves_no_trace(
    tmp_path: Path, multistream: Build, bridges: list[str], repetitions: list[str]
) -> None:
    (tmp_path / "a.xml.bz2").write_bytes(multistream([*bridges[:16], *repetitions], 3))
    made = [corpus(tmp_path / "a.xml.bz2", tmp_path / str(workers), workers=workers) for workers in (1, 2, 4)]
    assert [made[0].counts[name] for name in REPEATED] == [1, 1, 1]
    assert shards(made[0]) == shards(made[1]) == shards(made[2])
    assert made[0].counts == made[1].counts == made[2].counts


def test_shards_have_about_equally_many_sentences(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))
    one = corpus(tmp_path / "a.xml", tmp_path / "one", shard_bytes=2**20)
    many = corpus(tmp_path / "a.xml", tmp_path / "many", shard_bytes=1500)
    assert list(sentences(one)) == list(sentences(many))
    assert titles(one) == titles(many) == [f"{i}. híd" for i in range(1, 41)]
    documents = list(read_documents(one, shard_names(one)[0]))
    size = sum(len("\n".join(document).encode()) + 2 for document in documents)
    assert many.counts["text_bytes"] == size
    assert many.counts["shards"] == len(shard_names(many)) == -(-size // 1500)
    lengths = [sum(map(len, read_documents(many, name))) for name in shard_names(many)]
    assert max(lengths) - min(lengths) <= 2 * max(map(len, documents))
    assert many.counts["sentences"] == len(list(sentences(many)))
    assert many.counts["words"] == sum(len(sentence.split()) for sentence in sentences(many))


def test_sources_keep_their_order_and_the_first_copy_wins(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "b.xml").write_bytes(export(bridges[5:15]))
    (tmp_path / "a.xml").write_bytes(export(bridges[:10]))
    config = CorpusConfig(source=(str(tmp_path / "b.xml"), str(tmp_path / "a.xml")), language="hu", workers=1)
    artifact = run(config, tmp_path / "corpus")
    assert titles(artifact) == [f"{i}. híd" for i in [*range(6, 16), *range(1, 6)]]
    assert artifact.counts["duplicates"] == 5
    off = DeduplicateConfig(documents=False, near_documents=False, paragraphs=False)
    kept = run(config.model_copy(update={"deduplicate": off}), tmp_path / "kept")
    assert kept.counts["kept"] == 20


def test_sources_have_weights_and_are_counted_apart(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "b.xml").write_bytes(export(bridges[5:15]))
    (tmp_path / "a.xml").write_bytes(export(bridges[:10]))
    source = ({"path": str(tmp_path / "b.xml"), "weight": 2}, {"path": str(tmp_path / "a.xml"), "weight": 0.5})
    artifact = run(CorpusConfig(source=source, language="hu", workers=1, shards=3, seed=3), tmp_path / "corpus")
    found = titles(artifact)
    assert found[:20] == [f"{i}. híd" for i in range(6, 16) for _ in range(2)]
    counts = artifact.counts
    assert (counts["shards"], counts["copies"], counts["kept"]) == (3, len(found), 10 + len(found[20:]))
    first, second = counts["sources"]
    assert [first[key] for key in ("documents", "kept", "duplicates", "copies", "weight")] == [10, 10, 0, 20, 2]
    assert [second[key] for key in ("documents", "weight")] == [10, 0.5] and 0 < second["not_drawn"] < 10
    assert second["kept"] + second["duplicates"] + second["not_drawn"] == 10 and 0 < second["duplicates"] <= 5
    assert all(first[key] + second[key] == counts[key] for key in ("sentences", "words", "text_bytes", "pages"))


def test_evaluation_texts_are_searched_and_hashed_by_content(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))
    plain = corpus(tmp_path / "a.xml", tmp_path / "plain")
    first = next(sentence for sentence in sentences(plain) if sentence.count(" ") > 14)
    (tmp_path / "test.txt").write_text(
        f"{first}\nEz a mondat nincs a szövegben, de elég hosszú ahhoz, hogy {first[:20]}"
    )
    found = corpus(tmp_path / "a.xml", tmp_path / "checked", contamination=(tmp_path / "test.txt",))
    (report,) = found.counts["contamination"].values()
    assert (report["sentences"], report["found"], report["examples"]) == (2, 1, [first])
    assert shards(found) == shards(plain)
    (tmp_path / "test.txt").rename(tmp_path / "renamed.txt")
    renamed = CorpusConfig(
        source=str(tmp_path / "a.xml"), language="hu", contamination=(tmp_path / "renamed.txt",), shard_bytes=1024,
        filter=FilterConfig(identify=False),
    )  # fmt: skip
    assert identity(renamed).fingerprint == found.fingerprint
    (tmp_path / "renamed.txt").write_text("Más.")
    assert identity(renamed).fingerprint != found.fingerprint


def test_facts_name_headings_and_paragraphs(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges[:1]))
    artifact = corpus(tmp_path / "a.xml", tmp_path / "corpus", filter=FilterConfig())
    (document,) = read_documents(artifact, shard_names(artifact)[0])
    (facts,) = read_facts(artifact, shard_names(artifact)[0])
    assert facts["headings"] == [[2, "Története"]]
    assert document[2].startswith("A híd alapkövét")
    assert [document[i].split()[0] for i in facts["paragraphs"]] == ["A", "A", "Az", "A"]
    assert facts["url"] == "https://hu.wikipedia.org/wiki/1._h%C3%ADd"
    assert (facts["id"], facts["revision"], facts["source"], facts["language"]) == (1, 1001, "huwiki", "hu")
    assert facts["licence"] == "CC BY-SA"
    assert "Története" not in document


@pytest.mark.usefixtures("small_pieces")
@each_row("name", ["a.xml", "c.xml.bz2", "d.xml.xz", "e.xml", "g.xml.bz2"])
def test_a_cut_dump_keeps_every_whole_page(
    tmp_path: Path, packagings: Packagings, bridges: list[str], name: str
) -> None:
    pages = bridges[:6]
    data = packagings(pages)[name]
    everything = [f"{i}. híd" for i in range(1, 7)]
    outcomes = set()
    for n, size in enumerate(range(len(data) * 3 // 10, len(data), max(1, len(data) // 15))):
        path, log = tmp_path / f"{n} {name}", Heard()
        path.write_bytes(data[:size])
        try:
            found = titles(corpus(path, tmp_path / f"{n} out", log))
        except DataError as error:
            assert "contains no complete page" in str(error) or "first block" in str(error)
            outcomes.add(0)
            continue
        assert found == everything[: len(found)]
        if name == "a.xml":
            assert len(found) == data[:size].count(b"</page>")
        assert len(found) == 6 or [m for m in log.said if f"'{found[-1]}'" in m and "interrupted" in m]
        outcomes.add(len(found))
    assert len(outcomes) > 1


def test_what_a_cut_dump_lost_is_counted(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    data = export(bridges[:4])
    (tmp_path / "a.xml").write_bytes(data[: data.rindex(b"<page>") + 200])
    artifact = corpus(tmp_path / "a.xml", tmp_path / "corpus")
    assert artifact.counts["sources"][0]["cut"] == {"after": "the page '3. híd' (id 3)", "lost_bytes": 200}


def test_only_articles_become_documents(tmp_path: Path, export: Build, bridges: list[str], new_page: Any) -> None:
    pages = [
        new_page(100, "Régi híd", "#ÁTIRÁNYÍTÁS [[1. híd]]"),
        new_page(101, "Vita:1. híd", "Szerintem szép.", namespace=1),
        new_page(102, "Híd (egyértelműsítő lap)", "{{egyért}}\n* [[1. híd]]"),
        new_page(103, "Úgy híd", "", extra='    <redirect title="1. híd" />\n'),
        new_page(104, "Sablon", "x").replace("<model>wikitext", "<model>json"),
        bridges[0],
    ]
    (tmp_path / "a.xml").write_bytes(export(pages))
    counts = corpus(tmp_path / "a.xml", tmp_path / "corpus").counts
    assert (counts["pages"], counts["redirects"], counts["disambiguations"], counts["kept"]) == (6, 2, 1, 1)
    assert counts["other_namespaces"] == 2
    kept = corpus(tmp_path / "a.xml", tmp_path / "kept", keep_disambiguation=True, filter=FilterConfig(enabled=False))
    assert kept.counts["kept"] == 2


def test_old_exports_without_ns_use_the_title(tmp_path: Path, export: Build, new_page: Any, bridges: list[str]) -> None:
    pages = [new_page(9, "Vita:Híd", "Szép."), bridges[0]]
    (tmp_path / "a.xml").write_bytes(export(pages).replace(b"    <ns>0</ns>\n", b""))
    assert corpus(tmp_path / "a.xml", tmp_path / "corpus").counts["other_namespaces"] == 1


@pytest.mark.usefixtures("small_pieces")
def test_plain_text_in_any_packaging(tmp_path: Path) -> None:
    text = "".join(f"Ez a {i}. irat.  Két mondat van benne.\nEz új bekezdés.\n\n" for i in range(200)).encode()
    off = FilterConfig(enabled=False)
    results = []
    for name, data in {"a.txt": text, "b.txt.xz": lzma.compress(text), "c.bz2": bz2.compress(text)}.items():
        (tmp_path / name).write_bytes(data)
        artifact = corpus(tmp_path / name, tmp_path / f"{name} out", filter=off)
        results.append(shards(artifact))
    assert results[0] == results[1] == results[2]
    assert next(read_documents(artifact, shard_names(artifact)[0])) == [
        "Ez a 0. irat.",
        "Két mondat van benne.",
        "Ez új bekezdés.",
    ]
    whole = corpus(tmp_path / "a.txt", tmp_path / "lines", filter=off, lines="sentences")
    assert next(sentences(whole)) == "Ez a 0. irat. Két mondat van benne."


def test_a_cut_text_loses_its_last_document(tmp_path: Path) -> None:
    text = "".join(f"A {i}. sor áll itt.\n\n" for i in range(3000)).encode()
    (tmp_path / "a.txt.bz2").write_bytes(bz2.compress(text[:30_000]) + bz2.compress(text[30_000:])[:-10])
    log = Heard()
    artifact = corpus(tmp_path / "a.txt.bz2", tmp_path / "out", log, filter=FilterConfig(enabled=False))
    assert text.startswith("\n\n".join(sentences(artifact)).encode())
    assert any("ends after the document at byte" in line for line in log.said)


@each_row(
    ("name", "data", "reason"),
    [
        ("latin2.xml", lambda dump: dump.decode().encode("iso-8859-2", "replace"), r"not valid UTF-8 at byte \d+"),
        ("latin2.txt", lambda _: "Az őszi szél fúj.".encode("iso-8859-2"), "not valid UTF-8 at byte 3 "),
        ("html.xml.bz2", lambda _: b"<html>error 503</html>", "HTML"),
        ("empty.xml", lambda _: b"", "empty"),
        ("no page.xml", lambda _: b"<mediawiki></mediawiki>", "contains no complete page"),
        ("first page.xml.bz2", lambda dump: bz2.compress(dump[:900]), "contains no complete page"),
        ("blank.txt", lambda _: b"\n\n \n", "contains no complete document"),
        ("tag.xml", lambda dump: dump.replace(b"foly\xc3\xb3", b"<foly>"), "mismatched tag"),
        ("deep.xml", lambda dump: dump.replace(b"<ns>", b"<a>" * 9999 + b"</a>" * 9999 + b"<ns>"), "nested deeper"),
        ("torn.xml", lambda dump: dump.replace(b"</text>", b"", 1), "mismatched tag"),
        ("long.txt", lambda _: "Egy szép kis mondat. ".encode() * 3000, "raise corpus.filter.max_sentences"),
        (
            "english.txt",
            lambda _: "".join(f"The river winds between the hills of {x}land. " for x in ascii_lowercase).encode(),
            "dropped by the filter: .*Most likely cause: corp",
        ),
    ],
)
def test_bad_input_is_one_error_and_leaves_nothing(
    tmp_path: Path, export: Build, bridges: list[str], name: str, data: Callable[[bytes], bytes], reason: str
) -> None:
    (tmp_path / name).write_bytes(data(export(bridges)))
    config = CorpusConfig(source=str(tmp_path / name), language="hu", workers=1)
    if "long" in name:
        config = config.model_copy(update={"filter": FilterConfig(preset="turkunlp")})
    with pytest.raises(DataError, match=reason) as caught:
        run(config, tmp_path / "run" / "corpus")
    assert name in str(caught.value)
    assert list(tmp_path.glob("run/**/*")) == []


def test_damage_in_the_middle_is_an_error_and_no_loss(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    data = bytearray(lzma.compress(export(bridges)))
    data[len(data) // 2] ^= 1
    (tmp_path / "a.xml.xz").write_bytes(data)
    with pytest.raises(DataError, match="damaged before byte"):
        corpus(tmp_path / "a.xml.xz", tmp_path / "corpus")


def test_unwritable_output(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot write"):
        corpus(tmp_path / "a.xml", tmp_path / "file" / "corpus")


def test_second_run_is_identical_and_a_changed_key_is_named(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))
    out, log = tmp_path / "corpus", Heard()
    corpus(tmp_path / "a.xml", out, log)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    (tmp_path / "a.xml").rename(tmp_path / "renamed.xml")
    corpus(tmp_path / "renamed.xml", out, log, workers=2)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    corpus(tmp_path / "renamed.xml", out, log, filter=FilterConfig(identify=False, min_sentences=4))
    assert any("filter.min_sentences: 1 -> 4" in line for line in log.said)


def test_the_manifest_has_the_hash_of_the_whole_source(tmp_path: Path) -> None:
    """Also where the quick identity cannot tell two sources apart: a change between the sampled blocks."""
    first = b"A line of a text that is longer than what is sampled of it.\n" * 80_000
    second = bytearray(first)
    second[66_000] ^= 1
    settings = {"shard_bytes": 2**23, "lines": "sentences", "filter": FilterConfig(enabled=False)}
    made = []
    for name, data in (("first", first), ("second", second)):
        (tmp_path / f"{name}.txt").write_bytes(data)
        made.append(corpus(tmp_path / f"{name}.txt", tmp_path / name, **settings))
    assert made[0].fingerprint == made[1].fingerprint
    hashes = [artifact.counts["sources"][0]["sha256"] for artifact in made]
    assert hashes == [hashlib.sha256(data).hexdigest() for data in (first, second)]


def test_the_identity_is_known_before_any_work(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))
    config = CorpusConfig(source=str(tmp_path / "a.xml"), language="hu", workers=1)
    before = identity(config)
    assert before.fingerprint == run(config, tmp_path / "corpus").fingerprint
    assert before.fingerprint == identity(config.model_copy(update={"workers": 7})).fingerprint
    assert before.fingerprint != identity(config.model_copy(update={"language": "en"})).fingerprint
    with pytest.raises(DataError, match="cannot read"):
        identity(CorpusConfig(source=str(tmp_path / "missing.xml"), language="hu"))


def test_every_drop_reason_comes_with_its_meaning(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    stubs = [page.replace("naponta", "12345 67890 " * 12) for page in bridges[:3]]
    (tmp_path / "a.xml").write_bytes(export([*bridges, *stubs]))
    counts = corpus(tmp_path / "a.xml", tmp_path / "corpus").counts
    assert counts["dropped"] == {"digits": 3}
    assert counts["reasons"] == {"digits": "too many digits"}


def test_a_run_ends_with_what_became_of_documents_and_bytes(tmp_path: Path) -> None:
    log = Heard()
    corpus(GOLDEN / "bridges.xml", tmp_path / "corpus", log, filter=FilterConfig())
    assert log.said[1:] == [
        "corpus: documents and bytes               documents                 bytes",
        "kept                                              2  33.3%            824  43.5%",
        "no text left after cleaning                       1  16.7%              0   0.0%",
        "in another language                               1  16.7%            508  26.8%",
        "too few words                                     1  16.7%             15   0.8%",
        "same text as an earlier one                       1  16.7%            546  28.8%",
        "all                                               6                 1,893",
        "corpus: namespaces passed over                pages              wikitext",
        "Vita                                              1                    16",
        "corpus: WARNING: the filter dropped 27.6% of the text, most of it as 'language' (in another language). "
        "Most likely cause: corpus.language (or corpus.filter.languages) is wrong: it must name the language of "
        "the text. `bertwright corpus RECIPE --dropped` shows what was dropped.",
        "corpus: WARNING: 28.8% of the text was dropped as documents with the same text as an earlier one. Most "
        "likely cause: a source is named twice. Set corpus.deduplicate.documents=false to keep them.",
    ]


def test_small_losses_cause_no_warning(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))
    log = Heard()
    corpus(tmp_path / "a.xml", tmp_path / "corpus", log)
    assert not any("WARNING" in line for line in log.said)


def test_words_of_a_language_without_spaces_are_counted(tmp_path: Path) -> None:
    text = "柏林是德国的首都，也是德国最大的城市。北京是中华人民共和国的首都，有三千多年历史。"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    counts = corpus(tmp_path / "a.txt", tmp_path / "corpus", language="zh", filter=FilterConfig(enabled=False)).counts
    assert counts["words"] == counts["sources"][0]["words"] == 18


def test_the_last_document_needs_no_blank_line(tmp_path: Path) -> None:
    def make(draft: Path) -> dict[str, Any]:
        (draft / "shards").mkdir(parents=True)
        (draft / "shards" / f"00000{TEXT}").write_bytes(zstandard.compress(b"One.\nTwo.\n\nThree.\nFour."))
        return {}

    artifact = build(tmp_path / "corpus", Identity("corpus", 1, {}, {}), Heard(), make)
    assert list(read_documents(artifact, f"shards/00000{TEXT}")) == [["One.", "Two."], ["Three.", "Four."]]


def test_progress_counts_the_bytes_of_the_file(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))
    log = Heard()
    corpus(tmp_path / "a.xml", tmp_path / "corpus", log)
    done, total = log.done[-1]
    assert done == pytest.approx(total) == pytest.approx((tmp_path / "a.xml").stat().st_size / 1e6)


def test_unidentifiable_language_is_logged(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))
    log = Heard()
    corpus(tmp_path / "a.xml", tmp_path / "corpus", log, filter=FilterConfig(languages=("hu", "xx")))
    assert (
        "corpus: too few texts in hu and xx were measured, so no document is dropped because of its language"
        in log.said
    )


def test_a_dump_in_another_language_is_refused_before_the_work(
    tmp_path: Path, export: Build, bridges: list[str]
) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))
    log = Heard()
    with pytest.raises(RecipeError, match="says that its language is 'hu', but corpus.language is 'fi'") as caught:
        corpus(tmp_path / "a.xml", tmp_path / "run" / "corpus", log, language="fi")
    assert "its first articles are in 'hu'. Set corpus.language=hu, or, to keep both" in str(caught.value)
    assert (log.said, list(tmp_path.glob("run/**/*"))) == ([], [])
    corpus(tmp_path / "a.xml", tmp_path / "b", log, language="fi", filter=FilterConfig(languages=("fi", "hu")))
    assert not any("says that its language" in line for line in log.said)


def test_a_head_that_the_text_contradicts_is_remarked(tmp_path: Path, export: Build, bridges: list[str]) -> None:
    data = export(bridges).replace(b'xml:lang="hu"', b'xml:lang="en"').replace(b"huwiki", b"enwiki")
    (tmp_path / "a.xml").write_bytes(data)
    log = Heard()
    assert corpus(tmp_path / "a.xml", tmp_path / "corpus", log, filter=FilterConfig()).counts["kept"]
    assert (
        "its first articles are in 'hu', so the run follows the recipe. If the recipe is wrong: Set corpus.language=en"
        in log.said[0]
    )


@each_row(
    ("head", "language"),
    [
        (b'xml:lang="nb"><siteinfo><dbname>nowiki</dbname>', "no"),
        (b'xml:lang="nb"><siteinfo><dbname>nowiki</dbname>', "nb"),
        (b'xml:lang="en"><siteinfo><dbname>simplewiki</dbname>', "simple"),
        (b'xml:lang="gsw"><siteinfo><dbname>alswiki</dbname>', "als"),
        (b'xml:lang="hu"><siteinfo><dbname>huwiktionary</dbname>', "hu"),
        (b'xml:lang="lzh"><siteinfo><dbname>zh_classicalwiki</dbname>', "zh-classical"),
        (b'xml:lang="he"><siteinfo>', "he"),
    ],
)
def test_a_wiki_has_several_names_for_its_language(tmp_path: Path, head: bytes, language: str) -> None:
    names = b'<namespaces><namespace key="0" /><namespace key="6">File</namespace></namespaces></siteinfo>'
    (tmp_path / "a.xml").write_bytes(b"<mediawiki " + head + names + b"<page></page></mediawiki>")
    log = Heard()
    check_source_language(CorpusConfig(source="a.xml", language=language), examine(tmp_path / "a.xml"), log)
    assert log.said == []


@each_row("wrong", [{"shard_bytes": 10}, {"language": "Hungarian!"}, {"source": ()}, {"filtre": {}}])
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(RecipeError):
        CorpusConfig(**{"source": "a.xml", "language": "hu", **wrong})


KILLED = """
import os, signal, sys
from bertwright.corpus.sources import pieces
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.run import identity, run
from pathlib import Path
from string import ascii_lowercase

pieces.PLAIN_BYTES = 4_000
writes, replace = 0, os.replace

def counted(*arguments):
    global writes
    writes += 1
    if writes == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*arguments)

os.replace = counted
run(CorpusConfig(source=sys.argv[1], language="hu", shard_bytes=2_000, workers=1), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("name", ["a.xml", "a.xml.xz"])
def test_killed_at_any_write_a_rerun_gives_the_same_bytes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    export: Build,
    bridges: list[str],
    repetitions: list[str],
    name: str,
) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.pieces.PLAIN_BYTES", 4_000)
    data = export([*bridges[:20], *repetitions])
    (tmp_path / name).write_bytes(lzma.compress(data) if name.endswith("xz") else data)
    config = CorpusConfig(source=str(tmp_path / name), language="hu", shard_bytes=2_000, workers=1)
    writes: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda a, b, move=os.replace: (writes.append(b), move(a, b)))
        whole = run(config, tmp_path / "whole")
    assert len(writes) > 15
    for write in (1, len(writes) // 3, len(writes) * 2 // 3, len(writes)):
        command = [sys.executable, "-c", KILLED, str(tmp_path / name), str(tmp_path / f"killed {write}"), str(write)]
        process = subprocess.run(command, check=False)
        assert process.returncode == -9
        assert not (tmp_path / f"killed {write}").exists()
        resumed = run(config, tmp_path / f"killed {write}")
        assert shards(resumed) == shards(whole)
        assert resumed.counts == whole.counts
        assert not any(path.name.startswith(".") for path in resumed.path.rglob("*"))


def test_finished_parts_and_shards_are_not_made_again(
    tmp_path: Path, export: Build, bridges: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.xml").write_bytes(export(bridges))

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("bertwright.corpus.run.check_files", stop)
        corpus(tmp_path / "a.xml", tmp_path / "corpus")
    (draft,) = tmp_path.glob(".corpus.*.draft")
    before = {path.name: path.stat().st_mtime_ns for path in (draft / "shards").iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr("bertwright.corpus.part.PartWriter.finish", stop)
        artifact = corpus(tmp_path / "a.xml", tmp_path / "corpus")
    assert {path.name: path.stat().st_mtime_ns for path in (artifact.path / "shards").iterdir()} == before


@pytest.mark.parametrize("name", ["a.xml", "a.xml.xz"])
def test_damaged_draft_files_are_built_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    export: Build,
    bridges: list[str],
    repetitions: list[str],
    name: str,
) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.pieces.PLAIN_BYTES", 8_000)
    data = export([*bridges[:8], *repetitions])
    (tmp_path / name).write_bytes(lzma.compress(data) if name.endswith("xz") else data)
    config = CorpusConfig(source=str(tmp_path / name), language="hu", shard_bytes=4_000, workers=1)
    whole = run(config, tmp_path / "whole")

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("bertwright.corpus.run.check_files", stop)
        run(config, tmp_path / "begun" / "corpus")
    files = sorted(p.relative_to(tmp_path / "begun") for p in (tmp_path / "begun").rglob("*") if p.is_file())
    assert len(files) > 20 and any("shards" in path.parts for path in files)
    for number, file in enumerate(files):
        folder = Path(shutil.copytree(tmp_path / "begun", tmp_path / f"damaged {number}"))
        found = bytearray((folder / file).read_bytes())
        found[len(found) // 2] ^= 4
        (folder / file).write_bytes(found)
        resumed = run(config, folder / "corpus")
        assert shards(resumed) == shards(whole) and resumed.counts == whole.counts, file


@pytest.mark.parametrize(
    ("name", "language", "pages", "least_kept"),
    [
        ("ukwiki.xml.xz", "uk", 40, 20),
        ("enwiki-p10p30302-shortened.xml.bz2", "en", 30, 3),
        ("ltgwiki.xml.xz", "ltg", 150, 10),
    ],
)
def test_the_first_pages_of_real_dumps(
    tmp_path: Path, shared: Path, name: str, language: str, pages: int, least_kept: int
) -> None:
    with (lzma.open if name.endswith("xz") else bz2.open)(shared / "wiki" / name) as stream:
        data = stream.read(4_000_000)
    end = 0
    for _ in range(pages):
        end = data.index(b"</page>", end) + len(b"</page>")
    (tmp_path / "a.xml").write_bytes(data[:end])
    log = Heard()
    artifact = run(CorpusConfig(source=str(tmp_path / "a.xml"), language=language, workers=1), tmp_path / "corpus", log)
    counts = artifact.counts
    assert counts["pages"] == pages
    assert counts["kept"] >= least_kept
    repeated = counts["duplicates"] + counts["near_duplicates"] + counts["emptied"]
    assert counts["documents"] == counts["kept"] + repeated + sum(counts["dropped"].values())
    sizes = counts["bytes"]
    outcomes = ("kept", "duplicates", "near_duplicates", "emptied", "not_drawn", "duplicate_paragraphs")
    assert sizes["documents"] == sum(sizes[outcome] for outcome in outcomes) + sum(sizes["dropped"].values())
    assert sizes["kept"] == counts["text_bytes"]
    assert counts["pages"] == counts["documents"] + sum(
        counts[k] for k in ("redirects", "other_namespaces", "disambiguations")
    )
    assert all("[[" not in sentence and "{{" not in sentence for sentence in sentences(artifact))
