from importlib.metadata import version
from pathlib import Path

import pytest

from bertwright.core import task_records as module
from bertwright.core.errors import ArtifactError
from bertwright.core.task_records import record_libraries


class Said(list[str]):
    """A log that keeps what it is told."""

    def say(self, message: str) -> None:
        self.append(message)


def test_a_draft_of_other_library_versions_is_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a corpus of one sentence splitter, half of another, is what an upgrade between two starts would give."""
    said = Said()
    assert record_libraries(tmp_path, ["numpy"], said) == {"numpy": version("numpy")}  # type: ignore[arg-type]
    (tmp_path / ".parts").mkdir()
    record_libraries(tmp_path, ["numpy"], said)  # type: ignore[arg-type]
    assert (tmp_path / ".parts").is_dir() and not said
    monkeypatch.setattr(module, "version", lambda name: "99.0")
    with pytest.raises(ArtifactError, match=r"was started with other versions of libraries \(numpy .* -> 99.0\)"):
        record_libraries(tmp_path, ["numpy"], said, 2)  # type: ignore[arg-type]
    assert (tmp_path / ".parts").is_dir(), "others may be at work in it"
    assert record_libraries(tmp_path, ["numpy"], said) == {"numpy": "99.0"}  # type: ignore[arg-type]
    assert not (tmp_path / ".parts").exists()
    assert said == [
        f"{tmp_path.name} was started with other versions of libraries (numpy {version('numpy')} -> 99.0) and "
        "is started again"
    ]
