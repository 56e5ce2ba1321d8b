"""Why an artifact is not the one of an identity, and whether restoring settings can help."""

from pathlib import Path

from tests.rows import each_row

from bertwright.core.artifact import build
from bertwright.core.config import Identity, Section
from bertwright.core.log import SILENT
from bertwright.core.manifest import changes, remedy_of


class Masking(Section):
    static: bool = False
    rate: float = 0.15


class Phase(Section):
    length: int
    document_range: tuple[float, float] = (0.0, 1.0)
    masking: Masking = Masking()


class Train(Section):
    seed: int = 42
    phases: tuple[Phase, ...] = (Phase(length=8),)


def of(section: Section, version: int = 1, source: str = "a") -> Identity:
    return Identity("corpus", version, {"train": section}, {"source": source})


VERSION = "the stage's version changed: 1 -> 2"


@each_row(
    ("before", "now", "expected"),
    [
        (Train(), of(Train()), []),
        (Train(), of(Train(), 2), [VERSION]),
        (Train(seed=1), of(Train(), 2), [VERSION, "train.seed: 1 -> 42"]),
        (
            Train(phases=(Phase(length=8, document_range=(0, 0.5), masking=Masking(static=True)),)),
            of(Train(phases=(Phase(length=8, document_range=(0, 0.7)),))),
            [
                "train.phases.0.document_range.1: 0.5 -> 0.7",
                "train.phases.0.masking.static: True -> False",
            ],
        ),
        (Train(), of(Train(), source="b"), ["its input source changed"]),
    ],
)
def test_each_difference_is_a_phrase(before: Train, now: Identity, expected: list[str], tmp_path: Path) -> None:
    made = build(tmp_path / "corpus", of(before), SILENT, lambda draft: {})
    assert changes(made.manifest, now) == expected


def test_restoring_settings_is_the_advice_only_where_it_helps() -> None:
    assert remedy_of(["train.seed: 1 -> 42", "its input examples changed"]) == "Restore these settings"
    assert "continue with that version" in remedy_of([VERSION, "train.seed: 1 -> 42"])
