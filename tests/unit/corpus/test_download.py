import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.server import Server, serving

from bertwright.core.errors import DataError, RecipeError
from bertwright.corpus.download import database, download

DATA = bytes(range(256)) * 5_000
NAME = "huwiki-20260401-pages-articles-multistream.xml.bz2"


class Heard:
    """A log that remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def progress(self, stage: str, done: float, total: float, unit: str, **_: Any) -> None:
        assert (stage, unit) == ("download", "MB") and done <= total

    def record(self, row: dict[str, Any]) -> None:
        raise AssertionError(row)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """What dumps.wikimedia.org has of one dump."""
    monkeypatch.setattr("bertwright.core.remote._PAUSES", (0.0,))
    with serving() as server:
        server.files[f"huwiki/20260401/{NAME}"] = DATA
        sums = [f"{'0' * 40}  huwiki-20260401-pages-articles.xml.bz2"]
        sums += [f"{'1' * 40}  huwiki-20260401-pages-articles-multistream-index.txt.bz2"]
        sums += [f"{hashlib.sha1(DATA).hexdigest()}  {NAME}"]
        for date in ("20260401", "latest"):
            server.files[f"huwiki/{date}/huwiki-{date}-sha1sums.txt"] = "\n".join(sums).encode() + b"\n"
        yield server


@pytest.mark.parametrize("date", ["20260401", "latest"])
def test_a_dump_is_found_fetched_and_checked(tmp_path: Path, mirror: Server, date: str) -> None:
    log = Heard()
    for _ in range(2):
        path = download("hu", date, tmp_path / "dumps", mirror.address, log)
    assert path == tmp_path / "dumps" / NAME and path.read_bytes() == DATA
    assert [where for where, _ in mirror.asked].count(f"huwiki/20260401/{NAME}") == 1
    assert log.said[-1].endswith(f'In the recipe: source = "{path}" and language = "hu"')
    assert all(agent.startswith("bertwright/") for agent in mirror.agents)


def test_interrupted_download_resumes(tmp_path: Path, mirror: Server) -> None:
    sums = len(mirror.files["huwiki/latest/huwiki-latest-sha1sums.txt"])
    mirror.breaks = [sums, 1_000_000, 0, 0]
    with pytest.raises(DataError, match="stopped at byte 1,000,000"):
        download("hu", "latest", tmp_path, mirror.address)
    assert not (tmp_path / NAME).exists()
    assert download("hu", "latest", tmp_path, mirror.address).read_bytes() == DATA
    assert mirror.asked[-1] == (f"huwiki/20260401/{NAME}", 1_000_000)


def test_another_content_than_the_published_one(tmp_path: Path, mirror: Server) -> None:
    mirror.files[f"huwiki/20260401/{NAME}"] = DATA[::-1]
    with pytest.raises(DataError, match=f"its sha1 is .* moved to .*{NAME}.bad"):
        download("hu", "20260401", tmp_path, mirror.address)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == [f"{NAME}.bad"]


def test_what_is_not_there(tmp_path: Path, mirror: Server) -> None:
    with pytest.raises(DataError, match=f"404.*The existing dumps are listed at {mirror.address}/huwiki/"):
        download("hu", "20250101", tmp_path, mirror.address)
    mirror.files["huwiki/20260501/huwiki-20260501-sha1sums.txt"] = b"0  something-else\n"
    with pytest.raises(DataError, match="not finished or has failed. Choose another date"):
        download("hu", "20260501", tmp_path, mirror.address)
    assert list(tmp_path.iterdir()) == []


@each_row(("language", "date"), [("HU", "latest"), ("../x", "latest"), ("hu", "2026-04-01"), ("hu", "")])
def test_arguments(tmp_path: Path, language: str, date: str) -> None:
    with pytest.raises(RecipeError, match="Give|did you mean 'hu'|a wiki code has only lower-case letters"):
        download(language, date, tmp_path, "http://127.0.0.1:9")


@each_row(
    ("language", "name"),
    [
        ("hu", "huwiki"),
        ("simple", "simplewiki"),
        ("be-tarask", "be_x_oldwiki"),
        ("zh-yue", "zh_yuewiki"),
        ("yue", "zh_yuewiki"),
        ("nb", "nowiki"),
        ("nds-nl", "nds_nlwiki"),
        ("zh-min-nan", "zh_min_nanwiki"),
        ("roa-tara", "roa_tarawiki"),
        ("nlwiktionary", "nlwiktionary"),
        ("enwikisource", "enwikisource"),
        ("zh_yuewiki", "zh_yuewiki"),
        ("zh_min_nanwiktionary", "zh_min_nanwiktionary"),
        ("simplewiki", "simplewiki"),
    ],
)
def test_database_names(language: str, name: str) -> None:
    assert database(language) == name
