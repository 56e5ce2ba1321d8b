import hashlib
from pathlib import Path

import pytest
from tests.server import serving

from bertwright.core.errors import DataError, RecipeError
from bertwright.vocab import download as module
from bertwright.vocab.download import PUBLISHED, Published, download

CONTENT = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n" * 1000
PLACE = "google-bert/made/resolve/main/vocab.txt"


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Published("google-bert/made", hashlib.sha256(CONTENT).hexdigest(), True)
    monkeypatch.setitem(module.PUBLISHED, "made", found)


def test_it_is_fetched_once_and_whole(tmp_path: Path) -> None:
    with serving() as server:
        server.files[PLACE] = CONTENT
        server.breaks = [1000]
        for _ in range(2):
            path = download("made", tmp_path, hub=server.address)
            assert path == tmp_path / "made-vocab.txt" and path.read_bytes() == CONTENT
        assert server.asked == [(PLACE, 0), (PLACE, 1000)]


def test_another_content_is_refused(tmp_path: Path) -> None:
    with serving() as server:
        server.files[PLACE] = CONTENT + b"x"
        with pytest.raises(DataError, match="sha256"):
            download("made", tmp_path, hub=server.address)
    assert not (tmp_path / "made-vocab.txt").exists()


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="use one of google-uncased, google-cased, google-multilingual-cased"):
        download("google-klingon", tmp_path)


def test_every_hash_is_whole() -> None:
    assert all(len(bytes.fromhex(published.sha256)) == 32 for published in PUBLISHED.values())
