"""Where weights come from, as the folder says: the report of an import, or the card's metadata."""

import json
from pathlib import Path

import pytest
from tests.reference.teachers import write_stock
from tests.rows import each_row

from bertwright.core.errors import ArtifactError
from bertwright.export.hub_terms import NO_DERIVATIVES
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.importers.origin import IMPORT, Origin, hub_name, licence_in, origin_of
from bertwright.model.pretrained_config import read_pretrained
from bertwright.model.pretraining import PreTrainingModel


@each_row(
    ("card", "licence"),
    [
        ("---\nlicense: apache-2.0\n---\n", "apache-2.0"),
        ('\ufeff---\r\nlicense: "mit"  # as agreed\r\n---\r\n', "mit"),
        ("---\ntags:\n- license\nlicense:\n  - cc-by-4.0\n  - mit\n---\n", "cc-by-4.0"),
        ("---\nlicense: [cc-by-sa-3.0, gfdl]\n---\n", "cc-by-sa-3.0"),
        ("---\nlicense: other\nlicense_name: my-own\nlicense_link: https://example.org\n---\n", "my-own"),
        ("---\nlicense: unknown\n---\n", ""),
        ("---\nlanguage: hu\n---\nlicense: mit\n", ""),
        ("license: mit\n", ""),
        ("", ""),
    ],
)
def test_the_licence_of_a_card(card: str, licence: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(card.encode())
    assert licence_in(tmp_path / "README.md") == licence


def test_damaged_cards_state_nothing(tmp_path: Path) -> None:
    assert not licence_in(tmp_path / "none.md") and not licence_in(tmp_path)
    (tmp_path / "README.md").write_bytes(b"---\nlicense: \xff\xfe\n---\n")
    assert not licence_in(tmp_path / "README.md")


def test_names_of_the_cache() -> None:
    assert hub_name(Path("/x/models--owner--name/snapshots/1")) == "owner/name" and not hub_name(Path("/x/name"))


def test_what_an_import_recorded_comes_first(tmp_path: Path) -> None:
    folder = write_stock(tmp_path / "model", PreTrainingModel(BertModelConfig(size="tiny").resolve(40)))
    assert origin_of(read_pretrained(folder)) is None
    (folder / "README.md").write_text("---\nlicense: mit\n---\n", encoding="utf-8")
    assert origin_of(read_pretrained(folder)) == Origin("model", "mit")
    source = {"name": "owner/name", "licence": "", "sha256": "0" * 64}
    (folder / IMPORT).write_text(json.dumps({"source": source}), encoding="utf-8")
    found = origin_of(read_pretrained(folder))
    assert found is not None and found.facts() == {"source": "owner/name", "sha256": "0" * 64}
    for damaged in ("[]", "{", '{"source": 1}', '{"source": {"name": 1}}'):
        (folder / IMPORT).write_text(damaged, encoding="utf-8")
        with pytest.raises(ArtifactError, match=IMPORT):
            origin_of(read_pretrained(folder))


def test_licences_without_derivatives() -> None:
    assert {"cc-by-nd-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0"} == NO_DERIVATIVES
