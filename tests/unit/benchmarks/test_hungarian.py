"""The Hungarian hour at a size of seconds, and its recipe on the real texts' names."""

import json
import lzma
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import NOUNS, VERBS, small_text

from bertwright import Recipe

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import hungarian

pytestmark = pytest.mark.heavy

KEYS = [
    "corpus.language=en", "corpus.filter.enabled=false", "corpus.workers=1", "vocab.size=160",
    "vocab.alphabet_coverage=1", "examples.workers=1", "train.phases.0.batch=4", "train.threads=1",
    "train.precision=fp32", "train.heldout_sequences=8", "evaluate.max_sequences=16", "evaluate.samples=2",
    "evaluate.cloze=['The river [MASK=holds] the lamp.']",
]  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder as the hour wants it, of made-up sentences."""
    for folder in ("text", "eval/hu_nerkor"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    (tmp_path / "data/text/hu_eltec.txt.xz").write_bytes(lzma.compress(small_text().encode()))
    others = small_text(300).split("\n\n", 240)[240]
    (tmp_path / "data/text/hu_nerkor_wikipedia_sents.txt").write_text(others)
    tags = dict.fromkeys(NOUNS, "NOUN") | dict.fromkeys(VERBS, "VERB") | {"The": "DET", "the": "DET", "near": "ADP"}
    for name, documents in (("train", 20), ("test", 4)):
        sentences = [line.removesuffix(".").split() for line in small_text(documents).splitlines() if line]
        rows = ["".join(f"{word}\t{tags[word]}\tO\n" for word in sentence) for sentence in sentences]
        (tmp_path / f"data/eval/hu_nerkor/{name}.tsv").write_text("\n".join(rows))
    return tmp_path / "data"


def test_it_prints_curve_bits_gaps_and_probe(
    data: Path,
    tmp_path: Path,
    in_process: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(hungarian, "run_recipe", in_process)
    hungarian.main(str(tmp_path / "out"), str(data), "--minutes", "0.02", "--key", *KEYS)
    found = json.loads((tmp_path / "out" / "hungarian.json").read_text())
    manifest = json.loads((tmp_path / "out" / "run" / "corpus" / "manifest.json").read_text())
    assert [source["name"] for source in manifest["config"]["corpus"]["source"]] == ["ELTeC-hun", "NerKor"]
    seconds = [point["seconds"] for point in found["curve"]]
    assert seconds and seconds == sorted(seconds)
    assert found["scores"]["bits_per_character"] > 0 and found["probe"]["trained"]["overall"] > 0.5
    page = (tmp_path / "out" / "hungarian.md").read_text()
    assert page in capsys.readouterr().out
    assert "- The river [MASK] the lamp. (holds): " in page and page.count("\n- ") == 3
    assert f"bits a character {found['scores']['bits_per_character']:.3f}" in page
    points = re.findall(r"^\| \d+\.\d \| \d+\.\d \| \d+\.\d{3} \|", page, re.MULTILINE)
    assert "| its weights as drawn |" in page and len(points) == len(seconds)


def test_the_hour_is_of_the_two_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def stop(recipe: Path, keys: list[str], *_: object) -> None:
        given.extend(keys)
        raise SystemExit

    monkeypatch.setattr(hungarian, "run_recipe", stop)
    with pytest.raises(SystemExit):
        hungarian.hour(tmp_path, tmp_path / "data", 30, [])
    assert given == [
        f"corpus.source.0.path={tmp_path}/data/text/hu_eltec.txt.xz",
        f"corpus.source.1.path={tmp_path}/data/text/hu_nerkor_wikipedia_sents.txt",
        f"model.config={hungarian.NETWORK}",
        "train.phases.0.hours=0.5",
    ]


def test_the_recipe_is_an_hour_of_both_texts() -> None:
    recipe = Recipe.load(hungarian.RECIPE, [f"model.config={hungarian.NETWORK}"])
    assert recipe.train.phases[0].hours == 1 and recipe.corpus is not None
    assert [source.lines for source in recipe.corpus.source] == ["paragraphs", "sentences"]


def test_the_guide_shows_the_network_and_its_settings() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "how-to" / "quality.md").read_text(encoding="utf-8")
    shown = guide.split("```json\n")[1].split("```")[0]
    assert json.loads(shown) == json.loads(hungarian.NETWORK.read_text())
    settings = tomllib.loads(guide.split("```toml\n")[1].split("```")[0])
    recipe = tomllib.loads(hungarian.RECIPE.read_text(encoding="utf-8"))
    assert settings["model"].pop("size") == "tiny" and recipe["model"].pop("config") == hungarian.NETWORK.name
    assert settings["model"] == recipe["model"] and settings["optim"] == recipe["optim"]
    phase = recipe["train"].pop("phases")[0]
    assert settings["train"].pop("phases") == [phase] and settings["train"].items() <= recipe["train"].items()
