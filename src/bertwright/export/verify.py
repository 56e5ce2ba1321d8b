"""Read the exported folder back with stock `transformers` and compare it with the trained model.

Nothing here accesses the network: everything is loaded from the given folder with `local_files_only`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertwright.core import rng
from bertwright.core.errors import ArtifactError, memory_error
from bertwright.export.runtimes.hugging_face import quiet_transformers
from bertwright.model.batch import packed_sequences
from bertwright.model.classifier import Classifier
from bertwright.model.family import ANSWERS
from bertwright.model.interop.peer import peer_of
from bertwright.model.model import Model
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.vectors import VectorModel
from bertwright.vocab.entries import CLS, MASK, SEP, SPECIALS
from bertwright.vocab.tokenizer import Tokenizer

# Composed and decomposed accents, several scripts, no-break spaces, masks with and without a space before them; letters
# that NFC takes apart, a final sigma, and punctuation that older tables lack.
PROBES = (
    "Árvíztűrő tükörfúrógép, ÁRVÍZTŰRŐ TÜKÖRFÚRÓGÉP.",
    "A\u0301rvi\u0301ztu\u030bro\u030b tu\u0308ko\u0308rfu\u0301ro\u0301ge\u0301p.",
    "Zażółć gęślą jaźń; Київ, Ελλάδα, 東京 and naïve café.",
    "\u09b8\u09ae\u09df, \u09ac\u09be\u09dc\u09bf, \u0958\u0932\u092e, \u05e9\ufb2a\u05dc\u05d5\u05b9\u05dd.",
    "ΟΔΟΣ; a\u09fdb, a\u2e55b, \u212b and 5 k\u2126.",
    "It's 3.5 % of „something” - isn't it? \u00a0 (No.)",
    f"The {MASK} of a word, and{MASK}, {MASK}.",
)
ROWS = 8

Row = tuple[list[int], list[int]]


def rows_of(tokenizer: Tokenizer, texts: Sequence[str], positions: int) -> list[Row]:
    """Token ids of both segments, cut to `positions`; each row has a [MASK] in the middle of its first segment."""
    # A sequence that fills all positions: an error in the last position embeddings shows nowhere else.
    words = rng.below(rng.key("export"), np.arange(positions - 3), len(tokenizer.vocabulary)).tolist()
    half = len(words) // 2
    rows = [([tokenizer.ids(CLS), *words[:half], tokenizer.ids(SEP)], [*words[half:], tokenizer.ids(SEP)])]
    for a, b in zip(texts[:ROWS], [*texts[1:ROWS], texts[0]], strict=False):
        first, second = segments_of(tokenizer, a, b)
        first = first[:positions]
        rows.append((first, second[: positions - len(first)]))
    for first, _ in rows:
        first[len(first) // 2] = tokenizer.ids(MASK)
    return rows


def segments_of(tokenizer: Tokenizer, a: str, b: str) -> Row:
    """[CLS] a [SEP] and b [SEP] as this project encodes them; "[MASK]" in a text means the mask token, and so on."""
    flat, lengths = tokenizer.encode_texts([a, b])
    first, second = flat[: lengths[0]].tolist(), flat[lengths[0] :].tolist()
    return [tokenizer.ids(CLS), *first, tokenizer.ids(SEP)], [*second, tokenizer.ids(SEP)]


_TOKENS_AT_ONCE = 8192
"""Maximum number of tokens, with padding, in a batch for transformers; a BERT with 512 positions needs 4608."""


_TOKENIZERS = (
    "BertTokenizer",
    "BertTokenizerFast",
    "BertTokenizerLegacy",
    "DistilBertTokenizer",
    "DistilBertTokenizerFast",
    "PreTrainedTokenizerFast",
)
"""The classes of transformers, of any version, that users may load the folder with in place of AutoTokenizer."""


def compare_tokenizer(hf: Path, ours: Tokenizer, texts: Sequence[str], segments: bool = True) -> int:
    """The number of texts, including probes with accents and [MASK], that got our ids from every tokenizer of
    transformers that loads the folder; `ArtifactError` if any differs.

    `segments`: whether the tokenizer must return segment ids, as for a BERT; if False it must not.
    """
    import transformers

    compared = [*PROBES, *texts]
    with _loading(hf):
        exported = transformers.AutoTokenizer.from_pretrained(str(hf), local_files_only=True)
    _compare(hf, exported, ours, compared, segments)
    for name in _TOKENIZERS:
        if other := _refusing(hf, getattr(transformers, name, None)):
            _compare(hf, other, ours, compared, segments)
    return len(compared)


def _refusing(hf: Path, tokenizer: Any) -> Any:
    """The tokenizer of a class of transformers, or None if it does not exist or refuses to load the folder."""
    if tokenizer is None:
        return None
    with _loading(hf):
        try:
            return tokenizer.from_pretrained(str(hf), local_files_only=True)
        except TypeError:
            return None  # see `folder.REFUSED`


def _compare(hf: Path, exported: Any, ours: Tokenizer, compared: Sequence[str], segments: bool) -> None:
    """Raise `ArtifactError` if a tokenizer of transformers gives other ids than ours for a pair of texts."""
    if len(exported) != len(ours.vocabulary):
        raise _mismatch(hf, f"its tokenizer has {len(exported):,} entries, the vocabulary {len(ours.vocabulary):,}")
    for special in SPECIALS:
        if exported.convert_tokens_to_ids(special) != ours.ids(special):
            raise _mismatch(hf, f"its {special} is {exported.convert_tokens_to_ids(special)}, not {ours.ids(special)}")
    # In pairs, because the separators and segment ids of the second segment can be wrong too.
    for a, b in zip(compared, [*compared[1:], compared[0]], strict=True):
        first, second = segments_of(ours, a, b)
        encoding = exported(a, b, verbose=False)  # a text longer than the model takes is no fault here
        if encoding["input_ids"] != first + second:
            name = type(exported).__name__
            raise _mismatch(hf, f"its tokenizer ({name}) gives different ids from ours for {a!r} with {b!r}")
        expected = [0] * len(first) + [1] * len(second) if segments else None
        if encoding.get("token_type_ids") != expected:
            raise _mismatch(hf, f"its tokenizer gives wrong segments for {a!r} with {b!r}")


def compare_model(
    hf: Path, ours: Model, tokenizer: Tokenizer, texts: Sequence[str], tolerance: float
) -> dict[str, Any]:
    """The largest difference of the logits of each head; `ArtifactError` if one exceeds `tolerance`.

    The inputs are pairs of `texts` and one sequence of random tokens that fills all positions.
    """
    import transformers

    peer = peer_of(ours.config)
    architecture = getattr(transformers, peer.architecture)
    with _loading(hf):
        exported, loading = architecture.from_pretrained(str(hf), local_files_only=True, output_loading_info=True)
    # transformers initializes missing tensors randomly, with only a warning. Vectors need no pooler.
    named = {kind: sorted(map(str, names)) for kind, names in loading.items()}
    if isinstance(ours, VectorModel):
        named = {kind: [name for name in names if not name.startswith("pooler.")] for kind, names in named.items()}
    if faults := {kind: names for kind, names in named.items() if names}:
        raise _mismatch(hf, f"transformers did not find the tensors it expects: {faults}")
    rows = rows_of(tokenizer, [*PROBES, *texts], ours.config.max_position_embeddings)
    mask = tokenizer.ids(MASK)
    if isinstance(ours, Classifier):
        differences, compared = _of_classifier(ours, exported, rows, mask, peer.segments), len(rows)
    elif isinstance(ours, VectorModel):
        differences, compared = _of_encoder(ours, exported, rows, peer.segments), len(rows)
    else:
        mlm_PV, nsp_B2 = _our_logits(ours, rows, mask)
        their_mlm_PV, their_nsp_B2 = _their_logits(exported, rows, mask, peer.segments)
        differences = {"mlm_difference": _largest(mlm_PV[:, : len(tokenizer.vocabulary)], their_mlm_PV)}
        compared = len(mlm_PV)
        if nsp_B2 is not None:
            differences["nsp_difference"] = _largest(nsp_B2, their_nsp_B2)
    for name, difference in differences.items():
        # Not `>`: comparisons with NaN are false, so a NaN would pass.
        if not difference <= tolerance:
            raise _mismatch(hf, f"{name} of the logits is {difference:.3g}, above export.tolerance={tolerance:g}")
    return {**differences, "predictions_compared": compared, "transformers": transformers.__version__}


@torch.inference_mode()
def _of_classifier(ours: Classifier, exported: Any, rows: list[Row], mask: int, segments: bool) -> dict[str, float]:
    """The largest difference of the logits of all rows, [B, C], or of all their tokens, [T, C]; infinity if the names
    of the classes differ."""
    config, ids = ours.config, exported.config.id2label
    if config.head not in ANSWERS and tuple(ids[number] for number in sorted(ids)) != config.labels:
        return {"classification_difference": float("inf")}
    batch = packed_sequences(rows, mask)
    if config.head == "token":
        every = torch.arange(len(batch.token_ids))
        batch = replace(batch, prediction_positions=every, labels=every, weights=torch.ones(len(every)))
    own = ours.eval()(batch)
    if config.head == "choice":
        # All rows as the choices of one question.
        inputs = {name: values_BS[None] for name, values_BS in _inputs(rows, segments).items()}
        return {"classification_difference": _largest(own, exported.eval()(**inputs).logits.T)}
    their = torch.cat([_class_logits(exported.eval()(**_inputs([row], segments))) for row in rows])
    return {"classification_difference": _largest(own, their)}


def _class_logits(output: Any) -> Tensor:
    """The logits of one row: [1, C] of the sequence, or [T, C] of its tokens."""
    if "start_logits" in output:
        return torch.stack([output.start_logits[0], output.end_logits[0]], dim=1)
    logits: Tensor = output.logits
    return logits[0] if logits.dim() == 3 else logits


@torch.inference_mode()
def _of_encoder(ours: VectorModel, exported: Any, rows: list[Row], segments: bool) -> dict[str, float]:
    """The largest difference of the hidden states of all tokens [T, H]."""
    own_TH = ours.eval().encoder(packed_sequences(rows, -1))
    their = torch.cat([exported.eval()(**_inputs([row], segments)).last_hidden_state[0] for row in rows])
    return {"hidden_difference": _largest(own_TH, their)}


@torch.inference_mode()
def _our_logits(model: PreTrainingModel, rows: list[Row], mask: int) -> tuple[Tensor, Tensor | None]:
    mlm_PV, nsp_B2 = model.eval()(packed_sequences(rows, mask))
    return mlm_PV, nsp_B2


@torch.inference_mode()
def _their_logits(model: Any, rows: list[Row], mask: int, segments: bool) -> tuple[Tensor, Tensor]:
    # Their logits cover all positions, so long sequences are processed few rows at a time.
    at_once = max(1, _TOKENS_AT_ONCE // max(len(a) + len(b) for a, b in rows))
    parts = [_logits_of(model, rows[i : i + at_once], mask, segments) for i in range(0, len(rows), at_once)]
    mlm_parts, nsp_parts = zip(*parts, strict=True)
    return torch.cat(mlm_parts), torch.cat(nsp_parts)


def _logits_of(model: Any, rows: list[Row], mask: int, segments: bool) -> tuple[Tensor, Tensor]:
    inputs = _inputs(rows, segments)
    output = model.eval()(**inputs)
    masked_BS = (inputs["input_ids"] == mask) & inputs["attention_mask"].bool()
    if "logits" in output:
        return output.logits[masked_BS], torch.empty(0)
    return output.prediction_logits[masked_BS], output.seq_relationship_logits


def _inputs(rows: list[Row], segments: bool) -> dict[str, Tensor]:
    """The rows [B] padded to the longest, as tensors of [B, S]."""
    ids_BS = pad_sequence([torch.tensor(a + b) for a, b in rows], batch_first=True)
    real_BS = pad_sequence([torch.ones(len(a) + len(b), dtype=torch.int64) for a, b in rows], batch_first=True)
    inputs = {"input_ids": ids_BS, "attention_mask": real_BS}
    if segments:
        parts = [torch.tensor([0] * len(a) + [1] * len(b)) for a, b in rows]
        inputs["token_type_ids"] = pad_sequence(parts, batch_first=True)
    return inputs


def _largest(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference of two tensors, of any shape, as a share of the largest number where that is above 1:
    rounding grows with the numbers."""
    if ours.shape != theirs.shape:  # they might broadcast and agree by chance
        return float("inf")
    return float((ours - theirs).abs().max() / ours.abs().max().clamp(min=1.0))


@contextmanager
def _loading(hf: Path) -> Iterator[None]:
    """Silence transformers; its loading errors become `ArtifactError`."""
    try:
        with quiet_transformers():
            yield
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        if lacking := memory_error(error):
            raise lacking from error
        raise _mismatch(hf, f"transformers cannot load it: {error}") from error


def _mismatch(hf: Path, what: str) -> ArtifactError:
    return ArtifactError(
        f"the exported folder {hf} does not agree with the trained model: {what}. Nothing was published. Run the "
        "stage export again; if it fails again with the same message, try another version of transformers."
    )
