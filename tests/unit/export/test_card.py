"""What a dump or a recipe says of itself is text in the model card, never HTML or Markdown; warnings stand first."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from tests.rows import each_row

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.files import write_json
from bertwright.core.log import SILENT
from bertwright.examples.config import TextsConfig
from bertwright.export.card import Checked, model_card
from bertwright.export.config import ExportConfig, Inputs
from bertwright.export.origin import MOST_FILES, origin_of
from bertwright.page.markup import markdown

COUNTS = {
    "vocab": {"fertility": 1.5, "lower_case": False, "strip_accents": False},
    "train": {
        "parameters": 4_000_000,
        "steps": 1,
        "sequences_seen": 1,
        "tokens_seen": 1,
        "train_seconds": 1,
        "ranks": 1,
        "device": "cpu",
    },
    "evaluate": {
        "mlm_loss": 1.0,
        "mlm_accuracy": 0.5,
        "unigram_loss": 2.0,
        "most_common_token_accuracy": 0.1,
        "predictions": 9,
        "sequences": 3,
        "untrained": False,
    },
}
EXPORTED = {
    "architecture": "BertForMaskedLM",
    "parameters": 1,
    "vocab_size": 5,
    "mlm_difference": 0.0,
    "transformers": "5",
}


def card(
    tmp_path: Path,
    changed: Mapping[str, Any] = {},
    task: Mapping[str, Any] = {},
    stated: Mapping[str, Any] = {},
    **source: str,
) -> str:
    size = {"kept": 3, "sentences": 12, "words": 72}
    leak = {"sentences": 9, "found": 1, "short": 4, "short_found": 2}
    corpus = {**size, "sources": [{**size, **source}], "contamination": {"x/<b>qa.txt": leak}}
    made = {
        name: Artifact(
            tmp_path,
            {
                "stage": name,
                "fingerprint": "f",
                "counts": {**counts, **changed.get(name, {})},
                "config": {"corpus": {"language": "hu"}, "train": {"objective": dict(task)}},
            },
        )
        for name, counts in {**COUNTS, "corpus": corpus}.items()
    }
    origin = origin_of(made["corpus"], made["vocab"], TextsConfig())
    inputs = Inputs(made["train"], made["vocab"], made["evaluate"], made["corpus"])
    model_card(
        tmp_path / "README.md", ExportConfig(name="x", **stated), origin, inputs, Checked(EXPORTED, ["A [MASK]."])
    )
    return (tmp_path / "README.md").read_text()


@each_row("hostile", ["<script>alert(1)</script>", "[here](javascript:1)", "![](//x)", "a\n# b\x1b[2J"])
def test_names_licences_and_addresses_are_plain_words(tmp_path: Path, hostile: str) -> None:
    text = card(tmp_path, name=hostile, base=hostile, licence=hostile)
    assert "<" not in text and "\x1b" not in text and "\n# b" not in text and "&lt;b&gt;qa" in text
    page = MarkdownIt("commonmark").enable("table").render(text.partition("\n---\n")[2])
    assert not set(re.findall("<([a-z]+)", page)) & {"script", "a", "img"} and page.count("<h1>") == 1


def test_what_is_honest_stands_as_it_is(tmp_path: Path) -> None:
    base = "https://hu.wikipedia.org/wiki/Kezdőlap"
    text = card(tmp_path, name="huwiki", base=base, licence="CC BY-SA 4.0")
    assert f"- huwiki ({base}): 3 documents, 72 words, licence CC BY-SA 4.0" in text


def test_unfinished_and_untrained_come_first_in_the_verdict(tmp_path: Path) -> None:
    source = {"name": "huwiki", "base": "", "licence": "CC BY-SA 4.0"}
    assert "**U" not in card(tmp_path, **source)
    note = {"checkpoint": "step-000001200", "step": 1200, "steps": 6000, "phase": 0}
    told = card(tmp_path, {"train": {"unfinished": note}, "evaluate": {"untrained": True, "mlm_loss": 1.9}}, **source)
    before = told.partition("## Use")[0]
    assert "> **Unfinished.** This is the checkpoint `step-000001200`" in before and "step 1,200 of 6,000" in before
    assert "> **Untrained.** The model has not learned to use the context." in before


def test_what_training_started_from_is_named_with_what_was_not_taken(tmp_path: Path) -> None:
    source = {"name": "huwiki", "base": "", "licence": "CC BY-SA 4.0"}
    assert "| started from | random weights |" in card(tmp_path, **source)
    init = {"folder": "models/x", "fingerprint": "0123456789abcdef", "drawn": "mlm.norm", "left_out": "nsp.classifier"}
    text = card(tmp_path, {"train": {"init": init}}, **source)
    assert "# Hungarian BERT of 4 M weights, trained further for a second" in text and "| 1.0 s, ranks: 1" in text
    assert "| 7.2 s, ranks: 1" in card(tmp_path, {"train": {"hours": 0.002}}, **source), "as in the title"
    assert (
        "| started from | models/x (fingerprint 0123456789ab); random weights for mlm.norm; without its "
        "nsp.classifier |" in text
    )
    assert "Training started from `models/x`, whose texts this card does not describe." in text
    assert "It was tested only on texts like those below in Hungarian." in text


def test_a_model_that_predicts_a_number_is_not_called_a_classifier(tmp_path: Path) -> None:
    scores = {"regression_loss": 1.0, "constant_loss": 2.0, "pearson": 0.8, "sequences": 100}
    task = {"kind": "classification", "labels": ["stars"]}
    text = card(tmp_path, {"evaluate": scores}, task, name="huwiki", base="", licence="CC BY-SA 4.0")
    assert "The folder holds the encoder with a head that predicts a number, `stars`." in text
    assert "To predict this number for texts like those that it was trained on." in text
    assert "classif" not in text.replace("text-classification", "") and "prejudices" not in text


def test_the_licence_is_the_one_that_the_recipe_states(tmp_path: Path) -> None:
    source = {"name": "huwiki", "base": "", "licence": "CC BY-SA 4.0"}
    assert "## Licence\n\nThis card grants no licence for the model; whoever publishes it" in card(tmp_path, **source)
    known = card(tmp_path, stated={"licence": "cc-by-sa-4.0"}, **source)
    assert "Who made this model states its licence: cc-by-sa-4.0." in known and "grants no" not in known
    own = {"licence": "minta-1.0", "licence_link": "https://minta.example.org/1.0"}
    assert "its licence: minta-1.0 (https://minta.example.org/1.0)." in card(tmp_path, stated=own, **source)


def test_files_made_elsewhere_are_named_with_their_hashes(tmp_path: Path) -> None:
    files = [{"file": f"part-{number}`*.hdf5", "sha256": f"{number:064}"} for number in range(MOST_FILES + 3)]
    counts = {
        "text": {"fertility": 1.2},
        "imported": {"train.phases.0": {"kind": "hdf5", "examples": 12_345}},
        "heldout": {"phases": {"train.phases.0": {"examples": 67, "share": None, "files": ["x_test_0.hdf5"]}}},
        "heldout_contamination": {"sentences": 9, "found": 2},
    }

    def make(draft: Path) -> dict[str, object]:
        (draft / "imported" / "0").mkdir(parents=True)
        write_json(draft / "imported/0/facts.json", {"files": files})
        return counts

    examples = build(tmp_path / "examples", Identity("examples", 1, {}, {}), SILENT, make)
    origin = origin_of(examples, examples, TextsConfig(language="hu", licence="CC0 <b>"))
    assert (origin.language, origin.unit, origin.fertility) == ("hu", "examples", 1.2)
    text = markdown(origin.text)
    assert "Phase 0: 12,345 examples (hdf5); 67 examples are held out (x\\_test\\_0.hdf5)." in text
    assert f"| part-1\\`\\*.hdf5 | `{1:064}` |" in text and "and 3 more files." in text
    assert "Licence of the texts: CC0 &lt;b&gt;." in text and "9 held-out segments of 13 words" in text
    assert "Licence of the texts: unknown." in markdown(origin_of(examples, examples, TextsConfig()).text)
