"""What the fingerprint of an artifact knows of the settings: those that differ from their defaults."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field
from tests.rows import each_row

from bertwright.core.artifact import build
from bertwright.core.config import Identity, Section, extendable, known_by_content, result_settings, runtime_only
from bertwright.core.log import SILENT
from bertwright.core.manifest import changes


class Sgd(Section):
    kind: Literal["sgd"] = "sgd"
    momentum: float = 0.9


class Adam(Section):
    kind: Literal["adam"] = "adam"
    eps: float = 1e-6
    fused: bool = runtime_only(False)


class Phase(Section):
    length: int
    steps: int | None = extendable(None)


class Before(Section):
    size: int = 3
    optim: Annotated[Sgd | Adam, Field(discriminator="kind")] = Adam()
    phases: tuple[Phase, ...] = (Phase(length=8),)
    table: Path | None = known_by_content(None)
    workers: int = runtime_only(0)


class Nested(Section):
    deep: bool = False


class After(Before):
    """A later version: two keys more, both off."""

    polish: float = 0.0
    nested: Nested = Nested()


def changed(section: Section, **settings: bool) -> object:
    return result_settings(section, defaults=False, **settings)


@each_row(
    ("section", "expected"),
    [
        (Before(), {}),
        (Before(size=4, workers=9), {"size": 4}),
        (Before(optim=Sgd()), {"optim": {"kind": "sgd"}}),
        (Before(optim=Adam(eps=1.0)), {"optim": {"kind": "adam", "eps": 1.0}}),
        (Before(optim=Adam(fused=True)), {}),
        (
            Before(phases=(Phase(length=8), Phase(length=9, steps=2))),
            {"phases": [{"length": 8}, {"length": 9, "steps": 2}]},
        ),
        (Before(table=Path("a")), {"table": "given"}),
        (After(nested=Nested(deep=True)), {"nested": {"deep": True}}),
    ],
)
def test_what_has_its_default_is_not_hashed(section: Section, expected: object) -> None:
    assert changed(section) == expected


def test_what_may_grow_is_no_difference_where_it_is_left_out() -> None:
    grown = Before(phases=(Phase(length=8, steps=5),))
    assert changed(grown, extendable=False) == {}
    assert changed(grown) == {"phases": [{"length": 8, "steps": 5}]}


def test_a_file_is_given_wherever_it_lies() -> None:
    assert changed(Before(table=Path("a/b"))) == changed(Before(table=Path("c")))
    assert result_settings(Before(table=Path("a/b")))["table"] == "given"
    assert result_settings(Before())["table"] is None


def of(section: Section, version: int = 1) -> Identity:
    return Identity("corpus", version, {"section": section}, {"source": "a"})


def test_a_new_key_that_is_off_changes_no_fingerprint(tmp_path: Path) -> None:
    made = build(tmp_path / "corpus", of(Before(size=4)), SILENT, lambda draft: {})
    again = build(tmp_path / "corpus", of(After(size=4)), SILENT, lambda draft: pytest.fail("made anew"))
    assert again.fingerprint == made.fingerprint == of(After(size=4)).fingerprint


def test_only_what_differs_is_named(tmp_path: Path) -> None:
    made = build(tmp_path / "corpus", of(Before(size=4)), SILENT, lambda draft: {})
    assert changes(made.manifest, of(After(size=5, polish=0.5))) == [
        "section.size: 4 -> 5",
        "section.polish: None -> 0.5",
    ]
    assert changes(made.manifest, of(After())) == ["section.size: 4 -> 3"]
    assert changes(made.manifest, of(After(size=4, optim=Sgd()))) == [
        "section.optim.kind: 'adam' -> 'sgd'",
        "section.optim.eps: 1e-06 -> None",
        "section.optim.momentum: None -> 0.9",
    ]
