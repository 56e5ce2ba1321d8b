"""transformers.js gives the ids and the numbers of transformers, in classes and in the pipelines that users type."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.rows import each_row
from tests.unit.export.tiny import FAMILIES, TEXTS, publish

from bertwright.core.errors import DataError
from bertwright.core.signals import PROGRAMS
from bertwright.export.certify.lines import NASTY
from bertwright.export.folder import write_hf_folder
from bertwright.export.runtimes.differences import Difference
from bertwright.export.runtimes.runtime import Outputs, Published
from bertwright.export.runtimes.transformers_js import (
    CLASSES,
    TRANSFORMERS_JS,
    TRANSFORMERS_JS_FP16,
    TRANSFORMERS_JS_INT8,
    TransformersJs,
)
from bertwright.export.runtimes.transformers_js_words import DIFFERENCES
from bertwright.model.saved import load_model
from bertwright.model.text_encoder import load_tokenizer
from bertwright.vocab.entries import SPECIALS
from bertwright.vocab.split import build_tokenizer

ROOT = Path(__file__).parents[3]
MODULES = ROOT / "tools" / "node" / "node_modules"
pytestmark = pytest.mark.heavy
pytest.importorskip("onnx", reason="pip install 'bertwright[onnx]'")

LINES = (
    *TEXTS,
    "ÁRVI\u0301ZTU\u030bRO\u030b 東京 ☃ 👩‍👩‍👧 🇭🇺",
    "a\u00a0\x07b\u200bc\ufeff\u2028d\u0085e\ufffd",
    "İstanbul, ıssız, ΟΔΌΣ και",
    "the [SEP] of [CLS]",
    "x" * 100 + " " + "x" * 101,
    "",
)
"""Decomposed letters, signs of several characters, controls, letters with cases of their own, special entries, words at
the limit, and none."""
MASKED = "A főváros [MASK], a folyó a Duna."
PAIRS = [(family, kind) for family in FAMILIES for kind in ("", "ForMaskedLM", "ForSequenceClassification")] + [
    (family, "ForTokenClassification") for family in FAMILIES
] + [("bert", "ForQuestionAnswering"), ("distilbert", "ForQuestionAnswering")]  # fmt: skip


@pytest.fixture(autouse=True)
def _packages(monkeypatch: pytest.MonkeyPatch) -> None:
    if MODULES.is_dir():
        monkeypatch.setenv("NODE_PATH", str(MODULES))
    if missing := TRANSFORMERS_JS.missing():
        pytest.skip(f"{missing} (make setup does)")


def write(model: Published, runtime: TransformersJs = TRANSFORMERS_JS) -> Path:
    """The ONNX file that a runtime reads, in the published folder."""
    assert runtime.refusal(model) == ""
    out = model.folder / "onnx"
    out.mkdir(exist_ok=True)
    runtime.writer.write(model, out)
    return out


def read(model: Published, runtime: TransformersJs, texts: tuple[str, ...]) -> list[tuple[list[int], Outputs]]:
    with runtime.open(model, write(model, runtime), threads=1) as reader:
        return [(reader.ids(text), reader.run(text)) for text in texts]


def expected(model: Published, ids: list[int], segments: list[int] | None = None) -> Any:
    """What transformers computes of a row of ids."""
    network = getattr(transformers, model.architecture).from_pretrained(model.folder, local_files_only=True).eval()
    given = {} if segments is None else {"token_type_ids": torch.tensor([segments])}
    with torch.inference_mode():
        return network(input_ids=torch.tensor([ids]), output_hidden_states=True, **given)


def logits_of(model: Published, found: Any, ids: list[int]) -> torch.Tensor:
    if model.head == "span":
        return torch.stack([found.start_logits[0], found.end_logits[0]], -1)
    if model.head == "masked":
        mask = load_tokenizer(model.folder).ids("[MASK]")
        return found.logits[0, ids.index(mask)]
    return found.logits[0]


@pytest.mark.parametrize(("family", "kind"), PAIRS)
def test_ids_and_outputs_are_those_of_transformers(family: str, kind: str, tmp_path: Path) -> None:
    model = publish(tmp_path, family, kind, labels=("one", "two") if "Q" in kind else ("one", "two", "three"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    texts = (MASKED, "An old [MASK] stands") if model.head == "masked" else LINES
    for text, (ids, outputs) in zip(texts, read(model, TRANSFORMERS_JS, texts), strict=True):
        assert ids == tokenizer(text, truncation=True, max_length=64).input_ids
        found = expected(model, ids)
        theirs = {"logits": logits_of(model, found, ids)} if model.head != "encoder" else {}
        if model.head in ("encoder", "masked"):
            theirs["hidden"] = found.hidden_states[-1][0]
            theirs["vector"] = theirs["hidden"].double().mean(0)
        assert outputs.keys() == theirs.keys()
        for name, array in outputs.items():
            np.testing.assert_allclose(array, theirs[name].numpy(), rtol=0, atol=1e-4)


def ids_of(folder: Path, lower_case: bool, lines: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
    """The ids in transformers.js and in training, with a vocabulary of the single characters of the lines: a character
    that is normalised or a word that is split otherwise shows."""
    model = publish(folder, "bert", lower_case=lower_case)
    out = write(model)
    words = build_tokenizer([*SPECIALS], lower_case, lower_case)
    kept = sorted({*"".join(lines), *"".join(map(words.normalizer.normalize_str, lines))} - {" "})
    build_tokenizer([*SPECIALS, *kept, *(f"##{each}" for each in kept)], lower_case, lower_case).save(
        str(folder / "tokenizer.json")
    )
    with TRANSFORMERS_JS.open(model, out, threads=1) as reader:
        theirs = [reader.ids(line)[1:-1] for line in lines]
    tokenizer = load_tokenizer(folder)
    return theirs, [tokenizer.encode_texts([line])[0].tolist() for line in lines]


@pytest.mark.parametrize("lower_case", [False, True])
def test_ids_are_those_of_training(lower_case: bool, tmp_path: Path) -> None:
    lines = [line for line in (*LINES, *NASTY) if len(line) < 62 and "\U00020000" not in line]
    lines = [line for line in lines if not lower_case or "Σ" not in line]
    theirs, ours = ids_of(tmp_path, lower_case, lines)
    assert theirs == ours
    assert not any(TRANSFORMERS_JS.explain(Published(tmp_path), line) for line in lines)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.example)
def test_other_ids_are_explained(difference: Difference, tmp_path: Path) -> None:
    """A version that reads one of these texts as BERT does is to be welcomed there, and on the page."""
    model = publish(tmp_path / "model", "bert", lower_case=difference.settings.lower_case)
    assert difference.reason in TRANSFORMERS_JS.explain(model, f"An old {difference.example}")
    ((theirs,), (ours,)) = ids_of(tmp_path / "ids", difference.settings.lower_case, [f"ς {difference.example}"])
    assert theirs != ours


def test_a_long_text_loses_its_last_entry(tmp_path: Path) -> None:
    model = publish(tmp_path, "bert")
    text = "river " * 200
    with TRANSFORMERS_JS.open(model, write(model), threads=1) as reader:
        ids = reader.ids(text)
    separator = load_tokenizer(tmp_path).ids("[SEP]")
    assert len(ids) == 64 and separator not in ids, "transformers keeps [SEP]"
    assert TRANSFORMERS_JS.explain(model, text) == "transformers.js cuts a text at 64 tokens without keeping [SEP]."


def test_an_export_has_the_ids_of_its_training(tmp_path: Path, trained: Callable[..., Any]) -> None:
    found = trained()
    write_hf_folder(tmp_path, load_model(found.train.path / "model"), found.vocab)
    model, tokenizer = Published(tmp_path), load_tokenizer(tmp_path)
    for text, (ids, outputs) in zip((MASKED,), read(model, TRANSFORMERS_JS, (MASKED,)), strict=True):
        assert ids[1:-1] == tokenizer.encode_texts([text])[0].tolist()
        found = expected(model, ids)
        np.testing.assert_allclose(outputs["logits"], logits_of(model, found, ids).numpy(), rtol=0, atol=1e-4)


@each_row(
    ("runtime", "least"), [(TRANSFORMERS_JS_FP16, 0.9999), (TRANSFORMERS_JS_INT8, 0.99)]
)  # fmt: skip
def test_fewer_bits_are_those_of_the_other_files(runtime: TransformersJs, least: float, tmp_path: Path) -> None:
    model = publish(tmp_path, "bert")
    (ids, outputs), *_ = read(model, runtime, TEXTS[:1])
    hidden_TH = expected(model, ids).last_hidden_state[0].numpy()
    ours_TH = outputs["hidden"]
    assert np.vdot(ours_TH, hidden_TH) / np.linalg.norm(ours_TH) / np.linalg.norm(hidden_TH) > least
    assert np.abs(ours_TH - hidden_TH).max() > 1e-5, "the bits are fewer"


def test_the_files_may_be_elsewhere(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "bert")
    out = tmp_path / "written" / "in a place"
    out.mkdir(parents=True)
    TRANSFORMERS_JS.writer.write(model, out)
    (tmp_path / "link").symlink_to(tmp_path / "hf")
    with TRANSFORMERS_JS.open(Published(tmp_path / "link"), out, threads=2) as reader:
        ids = reader.ids(TEXTS[0])
        np.testing.assert_allclose(
            reader.run(TEXTS[0])["hidden"], expected(model, ids).last_hidden_state[0].numpy(), atol=1e-4
        )


@each_row(
    ("family", "kind", "why"),
    [
        ("bert", "ForMultipleChoice", "no class for the choice between several texts"),
        ("modernbert", "ForQuestionAnswering", "no ModernBertForQuestionAnswering"),
    ],
)
def test_what_it_has_no_class_for(family: str, kind: str, why: str, tmp_path: Path) -> None:
    assert why in TRANSFORMERS_JS.refusal(publish(tmp_path, family, kind))


def test_a_folder_without_a_tokenizer_it_reads(tmp_path: Path) -> None:
    model = publish(tmp_path, "bert")
    (tmp_path / "tokenizer_config.json").unlink()
    assert TRANSFORMERS_JS.refusal(model).startswith("there is no tokenizer_config.json; save the tokenizer")


@pytest.mark.skipif(not (MODULES / "@huggingface").is_dir(), reason="transformers.js is not here: make programs")
def test_the_classes_are_those_of_the_package(tmp_path: Path) -> None:
    """Also that those it is refused for are still absent."""
    code = f"""
        const library = require({json.dumps(str(MODULES / "@huggingface" / "transformers"))});
        console.log(JSON.stringify([Object.keys(library), library.env.version]));
    """
    names, version = json.loads(subprocess.run(["node", "-e", code], capture_output=True, check=True).stdout)
    assert set(CLASSES.values()) <= set(names) and version == TRANSFORMERS_JS.version()
    assert not {"AutoModelForMultipleChoice", "ModernBertForQuestionAnswering"} & set(names)


def test_a_program_that_is_killed(tmp_path: Path) -> None:
    model = publish(tmp_path, "bert")
    with TRANSFORMERS_JS.open(model, write(model), threads=1) as reader:
        (process,) = PROGRAMS
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(DataError, match="transformers.js ended early: ended by SIGKILL"):
            reader.ids("a")
    assert not PROGRAMS


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    model = publish(tmp_path, "bert")
    out = tmp_path / "onnx"
    out.mkdir()
    with pytest.raises(DataError, match=r"transformers\.js ended early: .*was not found locally"), \
            TRANSFORMERS_JS.open(model, out, threads=1):  # fmt: skip
        pass
    (out / "model.onnx").write_bytes(b"no model")
    with pytest.raises(DataError, match=r"transformers\.js ended early: .*[Pp]rotobuf"), \
            TRANSFORMERS_JS.open(model, out, threads=1):  # fmt: skip
        pass
    assert not PROGRAMS


def test_a_program_that_is_silent(tmp_path: Path) -> None:
    model = publish(tmp_path, "bert")
    with pytest.raises(DataError, match=r"transformers\.js has not answered for 0\.01 seconds"), \
            TRANSFORMERS_JS.open(model, write(model), threads=1, seconds=0.01):  # fmt: skip
        pass
    assert not PROGRAMS


def test_where_it_looks_for_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = TRANSFORMERS_JS.version()
    modules = os.environ.pop("NODE_PATH")
    monkeypatch.chdir(tmp_path)
    assert "npm install @huggingface/transformers, or set NODE_PATH" in TRANSFORMERS_JS.missing()
    assert TRANSFORMERS_JS.version() == ""
    (tmp_path / "node_modules").symlink_to(modules)
    assert TRANSFORMERS_JS.missing() == "" and TRANSFORMERS_JS.version() == version
    monkeypatch.setenv("PATH", "")
    assert "Node.js is not installed" in TRANSFORMERS_JS.missing()


def test_the_page_runs(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "how-to" / "run-in-transformers-js.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"```js\n(.*?)\n```", guide, re.DOTALL))
    models = {
        name: publish(tmp_path / name, "bert", kind, labels)
        for name, kind, labels in (
            ("wiki", "ForMaskedLM", ()),
            ("wiki-classes", "ForSequenceClassification", ("old", "new", "other")),
            ("wiki-tags", "ForTokenClassification", ("O", "B-PLACE", "I-PLACE")),
            ("wiki-answers", "ForQuestionAnswering", ("begin", "end")),
        )
    }
    for model in models.values():
        write(model)
    (tmp_path / "node_modules").symlink_to(os.environ["NODE_PATH"])
    (tmp_path / "fill.mjs").write_text(re.sub(r"console\.log\((.*)\);", r"console.log(JSON.stringify(\1));", program))
    done = subprocess.run(["node", "fill.mjs"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    filled, vectors, classified, tagged, answered = map(json.loads, done.stdout.splitlines())

    text = "The mill by the river."
    best = transformers.pipeline("fill-mask", str(tmp_path / "wiki"))("The [MASK] by the river.")
    assert [each["token"] for each in filled] == [each["token"] for each in best]
    np.testing.assert_allclose([e["score"] for e in filled], [e["score"] for e in best], atol=1e-5)

    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "wiki")
    for vector, line in zip(vectors, ("The mill.", "A river."), strict=True):
        hidden_TH = expected(models["wiki"], tokenizer(line).input_ids).hidden_states[-1][0]
        np.testing.assert_allclose(vector, hidden_TH.mean(0), atol=1e-4)

    (best,) = transformers.pipeline("text-classification", str(tmp_path / "wiki-classes"))(text)
    assert classified[0]["label"] == best["label"] and abs(classified[0]["score"] - best["score"]) < 1e-5

    tags = transformers.pipeline("token-classification", str(tmp_path / "wiki-tags"), ignore_labels=[])(text)
    assert [(e["entity"], e["index"], e["word"]) for e in tagged] == [
        (e["entity"], e["index"], e["word"]) for e in tags
    ]

    question, context = "Where is the mill?", "The mill stands by the river."
    pair = tokenizer(question, context)
    begin = pair.input_ids.index(tokenizer.sep_token_id) + 1
    segments = [int(i >= begin) for i in range(len(pair.input_ids))]
    found = expected(models["wiki-answers"], pair.input_ids, segments)
    # All but the question and [SEP]; [CLS] says that there is no answer, and is no answer.
    asked = np.r_[0, begin : len(pair.input_ids) - 1]
    first, last = (
        torch.softmax(ends[0][asked].double(), 0).numpy()[1:] for ends in (found.start_logits, found.end_logits)
    )
    scores = np.triu(np.outer(first, last))
    i, j = np.unravel_index(scores.argmax(), scores.shape)
    assert abs(answered["score"] - scores[i, j]) < 1e-5
    assert answered["answer"] == tokenizer.decode(pair.input_ids[begin + i : begin + j + 1], skip_special_tokens=True)
