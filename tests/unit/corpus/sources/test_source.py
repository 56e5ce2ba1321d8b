import hashlib
import io
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server import Server, serving
from tests.unit.corpus.sources.reading import Read

from bertwright.core.addresses import redact_credentials
from bertwright.core.errors import DataError
from bertwright.core.files import sha256_of
from bertwright.core.log import SILENT
from bertwright.core.remote import fetch
from bertwright.corpus.config import CorpusConfig, FilterConfig, SourceConfig
from bertwright.corpus.errors import SourceError
from bertwright.corpus.run import identity, run
from bertwright.corpus.sources.source import Source, open_source


@pytest.fixture
def novels(tmp_path: Path) -> Path:
    """A folder of three texts, with marks that other programs leave."""
    for name in ("b.txt", "a.txt", "c/d.txt", ".hidden", "_SUCCESS", "c/.crc"):
        path = tmp_path / "novels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name if name.endswith("txt") else "")
    return tmp_path / "novels"


def opened(path: object) -> Source:
    return open_source(SourceConfig(path=str(path)), Path("downloads"), SILENT)


def names(path: object) -> list[str]:
    return [file.path.name for file in opened(path).files]


def test_files_folders_and_patterns(novels: Path) -> None:
    assert names(novels) == ["a.txt", "b.txt", "d.txt"]
    assert names(novels / "*.txt") == ["a.txt", "b.txt"]
    assert names(novels / "**" / "*.txt") == ["a.txt", "b.txt", "d.txt"]
    assert names(novels / "[bc]*") == ["b.txt", "d.txt"]
    assert names(novels / "a.txt") == ["a.txt"]
    (novels / "[x].txt").write_text("a name that looks like a pattern")
    assert names(novels / "[x].txt") == ["[x].txt"]


def test_workers_elsewhere_find_the_same_files(novels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(novels)
    assert opened("a.txt").files[0].path == novels / "a.txt"


def test_name_of_a_source(novels: Path) -> None:
    assert [opened(path).name for path in (novels, novels / "*.txt", novels / "a.txt")] == ["novels", "novels", "a"]
    assert str(opened(novels)) == "novels (text, 3 files, 17 bytes)"


def test_documents_of_all_files_are_one_source(novels: Path, tmp_path: Path) -> None:
    read = Read(novels, tmp_path)
    assert read.texts == [["a.txt"], ["b.txt"], ["c/d.txt"]]
    assert read.names == ["0000-000000", "0000-000001", "0000-000002"]


def test_hashes(novels: Path) -> None:
    alone, together = opened(novels / "a.txt"), opened(novels)
    hashes = [hashlib.sha256(name).hexdigest() for name in (b"a.txt", b"b.txt", b"c/d.txt")]
    assert (alone.sha256, together.sha256) == (hashes[0], sha256_of(hashes))
    before = together.sampled_hash
    (novels / "c").rename(novels / "e")
    assert opened(novels).sampled_hash == before
    (novels / "b.txt").write_text("B.txt")
    assert opened(novels).sampled_hash != before


def test_files_of_up_to_four_mebibytes_are_hashed_whole(tmp_path: Path) -> None:
    for i in range(20):
        (tmp_path / f"{i:02}.txt").write_bytes(b"A line.\n" * 100_000)
    before = opened(tmp_path).sampled_hash
    with (tmp_path / "07.txt").open("r+b") as handle:
        handle.seek(100_000)
        handle.write(b"X")
    assert opened(tmp_path).sampled_hash != before


def test_missing_files_are_an_error(novels: Path) -> None:
    with pytest.raises(SourceError, match=r"no file matches .*\*\.xml\. Correct the pattern"):
        opened(novels / "*.xml")
    (novels / "empty").mkdir()
    with pytest.raises(SourceError, match="there is no file in .*empty. Set corpus.source to"):
        opened(novels / "empty")
    with pytest.raises(SourceError, match="cannot read .*none.txt: No such file"):
        opened(novels / "none.txt")


def test_one_source_has_one_format(novels: Path) -> None:
    (novels / "x.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(
        SourceError, match=r"several formats: a\.txt is text, x\.jsonl is jsonl.* such as novels/\*\.jsonl"
    ):
        opened(novels)


def test_an_empty_file_among_others_is_named(novels: Path) -> None:
    (novels / "aa.txt").write_text("")
    with pytest.raises(SourceError, match="aa.txt is empty"):
        opened(novels)


def test_links(novels: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "e.txt").write_text("e")
    (novels / "z").symlink_to(tmp_path / "elsewhere")
    assert names(novels) == ["a.txt", "b.txt", "d.txt", "e.txt"]
    (tmp_path / "elsewhere" / "back").symlink_to(novels)
    with pytest.raises(SourceError, match="z/back is a link to a folder that contains it. Remove the link"):
        opened(novels)
    (tmp_path / "elsewhere" / "back").unlink()
    (novels / "loop").symlink_to("loop")
    with pytest.raises(SourceError, match="cannot read .*loop: Too many levels of symbolic links"):
        opened(novels)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_that_may_not_be_read(novels: Path) -> None:
    (novels / "c").chmod(0)
    try:
        with pytest.raises(SourceError, match="cannot read .*c: Permission denied"):
            opened(novels)
    finally:
        (novels / "c").chmod(0o700)


def test_a_recipe_may_say_little_or_much() -> None:
    def sources(source: object) -> tuple[SourceConfig, ...]:
        return CorpusConfig(source=source, language="hu").source  # type: ignore[arg-type]

    assert sources("a") == sources({"path": "a"}) == sources(["a"]) == (SourceConfig(path="a"),)
    assert sources(["a", {"path": "b", "weight": 2}]) == (SourceConfig(path="a"), SourceConfig(path="b", weight=2.0))


LINES = {name: json.dumps({"text": f"{name}. szöveg."}) + "\n" for name in "abc"}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("bertwright.core.remote._PAUSES", ())
    with serving() as server:
        yield server


def test_a_file_of_the_web_is_fetched_once(tmp_path: Path, web: Server) -> None:
    web.files["texts/a.jsonl"] = LINES["a"].encode()
    url = f"{web.address}/texts/a.jsonl"
    for _ in range(2):
        read = Read(url, tmp_path)
        assert read.texts == [["a. szöveg."]]
    assert len(web.asked) == 1
    copy = tmp_path / "downloads" / "http" / web.address.removeprefix("http://") / "texts" / "a.jsonl"
    assert read.source.files[0].path == copy
    assert read.source.name == "a"


def test_a_query_makes_another_file_and_is_not_shown(tmp_path: Path, web: Server) -> None:
    web.files["get"] = LINES["a"].encode()
    first, second = (Read(f"{web.address}/get?id={i}", tmp_path).source.files[0].path for i in (1, 2))
    assert first != second and len(web.asked) == 2
    assert (
        Read(redact_credentials(f"{web.address}/get?id=2"), tmp_path).source.files[0].path == second
        and len(web.asked) == 2
    )
    with pytest.raises(SourceError, match="/get .* without the query.*Give the complete address"):
        Read(redact_credentials(f"{web.address}/get?id=3"), tmp_path)
    with pytest.raises(DataError, match="/none: HTTP Error 404") as caught:
        Read(f"{web.address}/none?sig=secret", tmp_path)
    assert "secret" not in str(caught.value)


def test_a_renewed_signature_does_not_make_another_file(tmp_path: Path, web: Server) -> None:
    web.files["a.jsonl"] = LINES["a"].encode()
    for query in ("?se=1&sig=old", "?se=2&sig=new", ""):
        assert Read(f"{web.address}/a.jsonl{query}", tmp_path).texts == [["a. szöveg."]]
    assert Read(f"HTTP{web.address.removeprefix('http')}/a.jsonl", tmp_path).texts == [["a. szöveg."]]
    assert len(web.asked) == 1
    assert [path.name for path in (tmp_path / "downloads").rglob("*") if path.is_file()] == ["a.jsonl"]


def test_passwords_make_no_folder(tmp_path: Path, web: Server) -> None:
    for url in (f"http://me:secret@{web.address.removeprefix('http://')}/a.jsonl", "ftp://me:secret@host/a.jsonl"):
        with pytest.raises(DataError, match="name or password") as caught:
            Read(url, tmp_path)
        assert "secret" not in str(caught.value)
    assert not [path for path in tmp_path.rglob("*") if "secret" in path.name] and not web.asked


def test_identity_needs_no_network(tmp_path: Path, web: Server, memory: str) -> None:
    web.files["a.jsonl"] = LINES["a"].encode()
    for url in (f"{web.address}/a.jsonl", memory + "/a.jsonl", memory, memory + "/*.jsonl", "s3://texts/a.jsonl"):
        config = CorpusConfig(source=url, language="hu", cache_dir=tmp_path / "downloads")
        with pytest.raises(SourceError, match="no complete copy .* bertwright corpus"):
            identity(config)
        if not url.startswith("s3"):
            Read(url, tmp_path)
            identity(config)
        if url == memory:
            (tmp_path / "downloads" / "memory" / url.partition("://")[2] / "deep" / "c.jsonl").unlink()
            with pytest.raises(SourceError, match="no complete copy"):
                identity(config)
    assert len(web.asked) == 1


def test_the_corpus_of_a_remote_source_is_that_of_a_local_one(tmp_path: Path, web: Server) -> None:
    data = "".join(f"A {i}. sor áll itt.\n\n" for i in range(50)).encode()
    web.files["a.txt"] = data
    (tmp_path / "b.txt").write_bytes(data)

    def config(path: str) -> CorpusConfig:
        off = FilterConfig(enabled=False)
        return CorpusConfig(source=path, language="hu", cache_dir=tmp_path / "downloads", filter=off, workers=1)

    remote, local = config(f"{web.address}/a.txt?sig=secret"), config(str(tmp_path / "b.txt"))
    made = run(remote, tmp_path / "remote")
    assert made.fingerprint == identity(local).fingerprint == identity(remote).fingerprint
    assert len(web.asked) == 1
    assert made.counts["sources"][0]["name"] == "a"
    assert "secret" not in (tmp_path / "remote" / "manifest.json").read_text()


def test_names_cannot_lead_out_of_the_folder(tmp_path: Path, web: Server) -> None:
    web.files["../../x.jsonl"] = LINES["a"].encode()
    path = Read(f"{web.address}/../../x.jsonl", tmp_path).source.files[0].path
    assert path.resolve().is_relative_to((tmp_path / "downloads").resolve())


@pytest.fixture
def memory() -> Iterator[str]:
    """The address of a folder with three files in fsspec's memory."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    name = uuid.uuid4().hex
    system = fsspec.filesystem("memory")
    for letter, line in LINES.items():
        system.pipe_file(f"/{name}/{'deep/' * (letter == 'c')}{letter}.jsonl", line.encode())
    yield f"memory://{name}"
    system.rm(f"/{name}", recursive=True)


@pytest.mark.parametrize(
    ("pattern", "found"), [("/a.jsonl", "a"), ("/*.jsonl", "ab"), ("", "abc"), ("/deep", "c"), ("/**/*.jsonl", "abc")]
)
def test_files_folders_and_patterns_of_a_storage(tmp_path: Path, memory: str, pattern: str, found: str) -> None:
    import fsspec

    read = Read(memory + pattern, tmp_path)
    assert sorted(read.texts) == [[f"{letter}. szöveg."] for letter in found]
    fsspec.filesystem("memory").pipe_file(f"/{memory.partition('://')[2]}/late.jsonl", LINES["a"].encode())
    assert Read(memory + pattern, tmp_path).articles == read.articles, "what was fetched stays as it is"


@pytest.mark.parametrize("pattern", ["/none.jsonl", "/*.xml"])
def test_empty_storage_is_an_error(tmp_path: Path, memory: str, pattern: str) -> None:
    with pytest.raises(SourceError, match=r"there is no file at memory://.* Correct the address|cannot list"):
        Read(memory + pattern, tmp_path)


def test_an_unknown_kind_of_address(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read teapot://a/b: .*Check the address"):
        Read("teapot://a/b", tmp_path)


def goes_on(folder: Path, url: str, tag: str) -> None:
    """Assert that of a file begun before, in the version that the storage calls `tag`, only the rest is asked for."""
    (folder / ".b.part").write_bytes(b"#####")
    (folder / ".b.part.json").write_text(json.dumps({"url": url, "size": len(LINES["a"].encode()), "tag": tag}))
    assert fetch(url, folder / "b", SILENT).read_bytes() == b"#####" + LINES["a"].encode()[5:]


@pytest.mark.filterwarnings("ignore")
def test_s3(tmp_path: Path, s3: Any) -> None:
    s3.create_bucket(Bucket="corpus")
    for letter, line in LINES.items():
        s3.upload_fileobj(io.BytesIO(line.encode()), "corpus", f"texts/{letter}.jsonl")
    assert Read("s3://corpus/texts", tmp_path).texts == [[f"{letter}. szöveg."] for letter in "abc"]
    assert Read("s3://corpus/texts/[ab].jsonl", tmp_path).texts == [["a. szöveg."], ["b. szöveg."]]
    goes_on(tmp_path, "s3://corpus/texts/a.jsonl", s3.head_object(Bucket="corpus", Key="texts/a.jsonl")["ETag"])
    with pytest.raises(DataError, match="s3://corpus/none"):
        Read("s3://corpus/none.jsonl", tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_azure(tmp_path: Path, azure: Any) -> None:
    client = azure.create_container("corpus")
    for letter, line in LINES.items():
        client.upload_blob(f"texts/{letter}.jsonl", line.encode())
    assert Read("az://corpus/texts", tmp_path).texts == [[f"{letter}. szöveg."] for letter in "abc"]
    assert Read("abfs://corpus/texts/[ab].jsonl", tmp_path).texts == [["a. szöveg."], ["b. szöveg."]]
    tag = client.get_blob_client("texts/a.jsonl").get_blob_properties().etag
    goes_on(tmp_path, "az://corpus/texts/a.jsonl", tag)
    with pytest.raises(DataError, match="az://corpus/none"):
        Read("az://corpus/none.jsonl", tmp_path)
