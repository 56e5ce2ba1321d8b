"""The metadata of the card, read by huggingface_hub's own code, and held against the rules that the hub documents.

`ModelCard.validate` asks the hub, so the rules of its specification (hub-docs, `modelcard.md`) are written down here.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.export.test_card import card

from bertwright.core.errors import RecipeError
from bertwright.corpus.wikis import wikis
from bertwright.export.config import ExportConfig
from bertwright.export.hub_terms import LICENCES, METRICS, language_codes
from bertwright.export.metadata import base_model_of, front_matter

pytest.importorskip("huggingface_hub", reason="reads the card as the hub's library does: pip install huggingface_hub")
SOURCE = {"name": "huwiki", "base": "", "licence": "CC BY-SA 4.0"}
HUB_METRICS = {
    "accuracy", "exact_match", "f1", "matthews_correlation", "mse", "pearsonr", "perplexity", "precision", "recall",
    "spearmanr",
}  # fmt: skip
"""Of the metrics in the library `evaluate`, whose names hf.co/metrics lists."""
TASKS = {"fill-mask", "text-classification", "token-classification", "question-answering", "multiple-choice"}
"""Of the tasks of huggingface.js, `packages/tasks`."""
KINDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("masked", {}, {}),
    ("classes", {"kind": "classification", "labels": ["a", "b"]}, {"classification_loss": 1.0, "accuracy": 0.75,
     "majority": 0.5, "f1": 0.5, "sequences": 9}),
    ("number", {"kind": "classification", "labels": ["stars"]}, {"regression_loss": 1.0, "constant_loss": 2.0,
     "pearson": 0.8, "spearman": float("nan"), "sequences": 9}),
]  # fmt: skip


def _loaded(text: str) -> Any:
    from huggingface_hub import ModelCard

    return ModelCard(text)


def _against_the_rules(data: dict[str, Any]) -> None:
    """What the specification says of each key."""
    assert all(re.fullmatch("[a-z]{2,3}", code) for code in data["language"])
    assert data["license"] in LICENCES | {"other"}
    assert (data["license"] == "other") == ("license_name" in data) == ("license_link" in data)
    assert data["library_name"] == "transformers" and data["pipeline_tag"] in TASKS
    assert set(data.get("metrics", ())) <= HUB_METRICS
    for name in [*data.get("datasets", ()), *([data["base_model"]] if "base_model" in data else [])]:
        assert re.fullmatch(r"([\w.-]+/)?[\w.-]+", name) and len(name) <= 96
    for model in data.get("model-index", ()):
        assert model["name"]
        for result in model["results"]:
            assert result["task"]["type"] and result["dataset"]["type"] and result["dataset"]["name"]
            assert all(each["type"] and isinstance(each["value"], float) for each in result["metrics"])


@each_row("name, task, scores", KINDS)
def test_the_hubs_library_reads_what_the_rules_ask_for(
    tmp_path: Path, name: str, task: dict[str, Any], scores: dict[str, Any]
) -> None:
    text = card(tmp_path, {"evaluate": scores}, task, **SOURCE)
    loaded = _loaded(text)
    data = loaded.data.to_dict()
    _against_the_rules(data)
    assert data["language"] == ["hu"] and data["license"] == "unknown" and data["tags"] == ["bert", "bertwright"]
    found = {each.metric_type: each.metric_value for each in loaded.data.eval_results}
    expected = {
        "masked": {"accuracy": 0.5},
        "classes": {"accuracy": 0.75, "f1": 0.5},
        "number": {"pearsonr": 0.8, "mse": 1.0},
    }
    assert found == expected[name] and set(data["metrics"]) == set(found)
    assert {each.dataset_name for each in loaded.data.eval_results} == {"held-out documents of huwiki"}
    assert loaded.data.model_name == "x" and loaded.text.lstrip().startswith("# Hungarian")


def test_results_come_back_from_the_hubs_form_as_they_are(tmp_path: Path) -> None:
    from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

    index = json.loads(re.findall(r"^model-index: (.*)$", card(tmp_path, **SOURCE), re.MULTILINE)[0])
    assert eval_results_to_model_index(*model_index_to_eval_results(index)) == index


def test_metadata_load_finds_the_block_of_a_file(tmp_path: Path) -> None:
    from huggingface_hub import metadata_load

    card(tmp_path, name="a\n---\n<b>: no", base="", licence="x")
    found = metadata_load(tmp_path / "README.md")
    assert found is not None and found["model-index"][0]["results"][0]["dataset"]["name"].endswith("of a\n---\n<b>: no")


def test_what_the_recipe_states_stands_there(tmp_path: Path) -> None:
    stated = {
        "licence": "minta-1.0",
        "licence_link": "https://minta.example.org/1.0",
        "base_model": "google-bert/bert-base-cased",
        "datasets": ["wikimedia/wikipedia", "imdb"],
    }
    data = _loaded(card(tmp_path, stated=stated, **SOURCE)).data.to_dict()
    _against_the_rules(data)
    assert (data["license"], data["license_name"]) == ("other", "minta-1.0")
    assert data["datasets"] == ["wikimedia/wikipedia", "imdb"] and data["base_model"] == "google-bert/bert-base-cased"
    known = _loaded(card(tmp_path, stated={"licence": "cc-by-sa-4.0"}, **SOURCE)).data.to_dict()
    assert known["license"] == "cc-by-sa-4.0" and "datasets" not in known and "base_model" not in known


def test_a_network_of_the_hubs_cache_is_the_base_model(tmp_path: Path) -> None:
    folder = "/home/me/.cache/huggingface/hub/models--google-bert--bert-base-cased/snapshots/cd5ef92"
    assert base_model_of({"folder": folder}) == "google-bert/bert-base-cased"
    assert base_model_of({"folder": "/x/models--bert-base-cased/snapshots/1"}) == "bert-base-cased"
    assert base_model_of({"folder": "runs/hu/train"}) == "" == base_model_of(None)


def test_each_wiki_has_codes_of_iso_639() -> None:
    codes = {wiki: language_codes(wiki) for wiki in wikis()}
    assert all(re.fullmatch("[a-z]{2,3}", code) for found in codes.values() for code in found) and all(codes.values())
    # `nrm`, `als` and `sh` are, in ISO 639, Narom, Tosk Albanian and a code that was withdrawn.
    named = {wiki: codes[wiki] for wiki in ("nrm", "als", "simple", "be-tarask", "nds-nl", "zh-yue", "no", "hu")}
    assert named == {
        "nrm": ["nrf"], "als": ["gsw"], "simple": ["en"], "be-tarask": ["be"], "nds-nl": ["nds"], "zh-yue": ["yue"],
        "no": ["no"], "hu": ["hu"],
    }  # fmt: skip
    assert language_codes("klingon") == []


def test_norwegian_is_a_language_and_not_false() -> None:
    data = _loaded("\n".join([*front_matter({"language": ["no"]}), "", "# x"])).data.to_dict()
    assert data["language"] == ["no"]


def test_each_metric_is_one_of_the_hubs() -> None:
    assert set(METRICS.values()) == HUB_METRICS


@each_row("settings, said", [
    ({"licence": "cc-by-sa-40"}, "did you mean cc-by-sa-4.0"),
    ({"licence": "minta-1.0"}, "give the address of its text too (licence_link)"),
    ({"licence": "mit", "licence_link": "https://x.example"}, "name that licence"),
    ({"licence_link": "https://x.example"}, "name that licence"),
    ({"licence": "CC BY-SA 4.0"}, "licence"),
    ({"base_model": "a/b/c"}, "base_model"),
    ({"datasets": ["my texts"]}, "datasets"),
])  # fmt: skip
def test_what_the_hub_would_refuse_is_refused_in_the_recipe(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(said)):
        ExportConfig(**settings)
