"""A finished run folder as the stages leave it, with invented numbers."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import tostring

import pytest

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.files import write_atomic
from bertwright.core.log import SILENT
from bertwright.page.markup import Content, element

CORPUS = {
    "pages": 5200,
    "redirects": 900,
    "other_namespaces": 300,
    "disambiguations": 100,
    "documents": 3900,
    "dropped": {"min_sentences": 800, "language": 50, "empty": 12},
    "reasons": {"min_sentences": "too few sentences", "language": "in another language", "empty": "no text left"},
    "removed_paragraphs": {"boilerplate": 77},
    "masked": {"email": 33},
    "duplicates": 8,
    "near_duplicates": 5,
    "emptied": 2,
    "not_drawn": 0,
    "duplicate_paragraphs": 699,
    "kept": 3023,
    "copies": 3523,
    "sentences": 81_234,
    "words": 1_234_567,
    "text_bytes": 9_876_543,
    "bytes": {
        "documents": 11_000_000,
        "dropped": {"min_sentences": 400_000, "language": 200_000, "empty": 0},
        "removed_paragraphs": 12_345,
        "kept": 9_376_543,
        "duplicates": 500_000,
        "near_duplicates": 400_000,
        "emptied": 20_000,
        "not_drawn": 0,
        "duplicate_paragraphs": 103_457,
    },
    "source_bytes": 23_456_789,
    "sources": [
        {
            "name": "huwiki",
            "format": "dump",
            "files": 1,
            "base": "https://hu.wikipedia.org/wiki/Kezd%C5%91lap",
            "licence": "CC BY-SA",
            "weight": 1.0,
            "documents": 3400,
            "kept": 2523,
            "words": 1_000_067,
            "cut": {"after": "Zsurló", "lost_bytes": 9988},
        },
        {
            "name": "novels <2>",
            "format": "text",
            "files": 12,
            "base": "",
            "licence": "unknown",
            "weight": 2.5,
            "documents": 500,
            "kept": 500,
            "words": 234_500,
            "cut": None,
        },
    ],
    "contamination": {
        "tests/questions.txt": {"sentences": 200, "found": 3, "share": 0.015, "short": 0, "short_found": 0}
    },
}
VOCABULARY = {
    "entries": 4000,
    "fertility": 1.52,
    "unknown_rate": 0.00021,
    "unknown_character_rate": 0.0004,
    "too_long": 0,
    "alphabet": {"characters": 141, "of": 160, "coverage": 0.999912, "missing": ["ñ", "<"]},
    "single_character_rate": 0.08,
    "unused_rate": 0.01,
    "sample_words": 300_000,
    "scripts": {
        "Latin": {
            "words": 295_000,
            "fertility": 1.51,
            "unknown_rate": 0.0,
            "single_character_rate": 0.07,
            "entries": 3700,
            "unused": 21,
        },
        "Cyrillic": {
            "words": 5000,
            "fertility": 2.75,
            "unknown_rate": 0.0125,
            "single_character_rate": 0.6,
            "entries": 140,
            "unused": 19,
        },
    },
    "trained_on": {"documents": 1801, "bytes": 5_000_000, "share": 0.506},
    "lower_case": False,
    "strip_accents": False,
}
EXAMPLES = {
    "train": {
        "documents": 2900,
        "sentences": 78_000,
        "tokens": 1_800_000,
        "rows": {"64": [30_000] * 4},
        "sequences": {
            "64": {
                "lengths": [*range(500, 10_000, 500), 25_000],
                "mean_length": 51.5,
                "deviation": 16.0,
                "longest": 64,
                "label_share": 0.524,
            }
        },
    },
    "heldout": {
        "documents": 130,
        "sentences": 3234,
        "tokens": 80_000,
        "rows": {"64": [1400]},
        "sequences": {
            "64": {
                "lengths": [1400, *[0] * 19],
                "mean_length": 50.5,
                "deviation": 16.0,
                "longest": 64,
                "label_share": 0.519,
            }
        },
        "unigram_loss": 5.91,
    },
    "heldout_contamination": {"sentences": 1900, "found": 38, "share": 0.02, "run": "26 characters"},
}
TRAIN = {
    "parameters": 4_386_178,
    "steps": 900,
    "sequences_seen": 71_200,
    "tokens_seen": 7_300_000,
    "tokens_per_second": 51_234.5,
    "train_seconds": 142.4,
    "tflops_done": 45_600.0,
    "hours": 0.04,
    "peak_memory_bytes": 700_000_000,
    "device": "cpu",
    "ranks": 1,
    "threads": 2,
    "torch": "2.13.0",
    "init": {"folder": "runs/first/train", "fingerprint": "0123456789abcdef"},
    "extensions": [{"phase": 1, "step": 150, "from": 200, "to": 300}],
    "left_out": [{"phase": 0, "from": 40, "to": 60}],
    "averaging": {
        "kind": "ema",
        "description": "an average <over> 600 updates",
        "heldout": {"mlm_loss": 2.75, "mlm_accuracy": 0.5},
        "trained_heldout": {},
        "better": "average",
        "kept": "average",
    },
    "phase_steps": [800, 300],
    "phase_ends": [600, 300],
    "sessions": [
        {"from_step": step, "ranks": 1, "threads": 2, "device": "cpu", "machine": "x86_64 AVX2", "torch": "2.13.0"}
        for step in (0, 480)
    ],
}
SCORES = {
    "mlm_loss": 2.31,
    "mlm_accuracy": 0.48,
    "perplexity": 10.07,
    "nsp_accuracy": 0.91,
    "nsp_majority": 0.52,
    "nsp_label_share": 0.52,
    "untrained": False,
    "unigram_loss": 5.9,
    "most_common_token_accuracy": 0.061,
    "most_common_token": ".",
    "predictions": 12_000,
    "sequences": 1400,
}
EXPORT = {"transformers": "5.23.0", "mlm_difference": 3.1e-6, "nsp_difference": 1e-6}
PREDICTIONS = [
    {
        "source": "cloze",
        "text": "Budapest [MASK] fővárosa.",
        "gold": None,
        "top": [("Magyarország", 0.72), ("a", 0.08), ("Ausztria", 0.04), ("az", 0.02), ("##s", 0.01)],
    },
    {
        "source": "held-out",
        "text": "Az árvíztűrő tükörfúrógép Győrben [MASK], ahol a folyó <széles> & mély.",
        "gold": "készült",
        "top": [("készült", 0.44), ("született", 0.21), ("van", 0.1), ("áll", 0.03), ("lett", 0.012)],
    },
]
NETWORK = {
    "num_hidden_layers": 2,
    "hidden_size": 128,
    "num_attention_heads": 2,
    "intermediate_size": 512,
    "max_position_embeddings": 64,
    "vocab_size": 4000,
    "hidden_dropout_prob": 0.0,
    "next_sentence": True,
}
PHASE = {
    "length": 64,
    "batch": 128,
    "learning_rate": 0.002,
    "schedule": {"kind": "linear"},
    "warmup": 0.1,
    "masking": {"rate": 0.15},
}
SETTINGS = {"train": {"phases": [PHASE, PHASE]}, "optim": {"kind": "adamw", "weight_decay": 0.01}}


def written(content: Content) -> str:
    """A part of a page as HTML."""
    return tostring(element("div", content), "unicode", method="html")


def metrics() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for step in range(10, 910, 10):
        phase, within, steps = (0, step, 600) if step <= 600 else (1, step - 600, 300)
        rows.append(
            {
                "phase": phase,
                "step": within,
                "steps": steps,
                "total_steps": step,
                "mlm_loss": 2.2 + 6 * math.exp(-step / 200) + 0.08 * math.sin(step),
                "time": f"2026-03-01T10:{step // 60:02}:{step % 60:02}Z",
                "grad_norm": 1.0 + 5 * math.exp(-step / 100),
                "learning_rate": 0.002 * min(within / 60, (steps - within) / steps),
                "tokens_per_second": 50_000 + 4_000 * math.sin(step / 3),
            }
        )
        if step % 60 == 0:
            rows[-1] |= {
                "heldout_mlm_loss": 2.3 + 5.8 * math.exp(-step / 200),
                "heldout_mlm_accuracy": 0.5 * (1 - math.exp(-step / 250)),
                "heldout_nsp_accuracy": 0.5 + 0.42 * (1 - math.exp(-step / 300)),
            }
    return rows


def _stage(
    folder: Path,
    name: str,
    config: dict[str, Any],
    counts: dict[str, Any],
    files: dict[str, Any],
    inputs: dict[str, Artifact],
) -> Artifact:
    def make(draft: Path) -> dict[str, Any]:
        for file, content in files.items():
            (draft / file).parent.mkdir(exist_ok=True)
            write_atomic(draft / file, content)
        return counts

    identity = Identity(name, 1, config, {key: artifact.fingerprint for key, artifact in inputs.items()})
    return build(folder / name, identity, SILENT, make)


@pytest.fixture
def run_folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes a run folder; keyword arguments replace the predictions or parts of the scores."""

    def make(predictions: list[dict[str, Any]] | None = None, **scores: Any) -> Path:
        folder = tmp_path / "próba"
        folder.mkdir()
        rows = "".join(json.dumps(row) + "\n" for row in metrics())
        lines = [
            {**line, "top": [{"token": token, "probability": p} for token, p in line["top"]]}
            for line in (PREDICTIONS if predictions is None else predictions)
        ]
        files = {"metrics.jsonl": rows.encode()}
        corpus = _stage(folder, "corpus", {"corpus": {"language": "hu"}}, CORPUS, {}, {})
        vocab = _stage(folder, "vocab", {}, VOCABULARY, {}, {"corpus": corpus})
        examples = _stage(
            folder,
            "examples",
            {"examples": {"plan": "next-sentence"}},
            EXAMPLES,
            {},
            {"corpus": corpus, "vocab": vocab},
        )
        train = _stage(
            folder, "train", SETTINGS, {**TRAIN, "network": NETWORK}, files, {"examples": examples, "vocab": vocab}
        )
        guessed = {"predictions.json": json.dumps(lines).encode()}
        evaluate = _stage(
            folder,
            "evaluate",
            {"evaluate": {"length": 64, "mask_rate": 0.25}},
            {**SCORES, **scores},
            guessed,
            {"train": train, "examples": examples},
        )
        sources = {"train": train, "vocab": vocab, "evaluate": evaluate, "corpus": corpus}
        _stage(folder, "export", {}, EXPORT, {}, sources)
        write_atomic(folder / "recipe.toml", b'[corpus]\nsource = "hu <wiki>.xml"\n')
        return folder

    return make
