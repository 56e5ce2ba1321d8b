"""What stages count and write down as JSON: the types that the stages after them rely on.

A count may be absent, as a stage of another version had it not, and others may stand beside these. One that is needed
and absent is refused where it is read (`files.Known`).
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Required

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Number = Annotated[float, Field(strict=True, ge=-1e15, le=1e15)]
Score = Annotated[float, Field(strict=True)] | None
"""None where there is none, or where it is no number."""
Text = Annotated[str, Field(strict=True, max_length=2**16)]
Flag = Annotated[bool, Field(strict=True)]


class _Size(TypedDict, total=False):
    kept: Count
    documents: Count
    sentences: Count
    words: Count
    text_bytes: Count


class _Cut(TypedDict, total=False):
    after: Text
    lost_bytes: Count


class _Source(_Size, total=False):
    name: Text
    format: Text
    files: Count
    database: Text
    base: Text
    licence: Text
    weight: Number
    cut: _Cut | None


class _Leak(TypedDict, total=False):
    sentences: Count
    found: Count
    share: Number
    short: Count
    short_found: Count


class _Bytes(TypedDict, total=False):
    documents: Count
    dropped: dict[Text, Count]
    kept: Count
    duplicates: Count
    near_duplicates: Count
    emptied: Count
    not_drawn: Count
    duplicate_paragraphs: Count


class _Corpus(_Size, total=False):
    bytes: _Bytes
    pages: Count
    redirects: Count
    other_namespaces: Count
    disambiguations: Count
    dropped: dict[Text, Count]
    reasons: dict[Text, Text]
    removed_paragraphs: dict[Text, Count]
    masked: dict[Text, Count]
    copies: Count
    duplicates: Count
    near_duplicates: Count
    emptied: Count
    not_drawn: Count
    duplicate_paragraphs: Count
    source_bytes: Count
    shards: Count
    sources: list[_Source]
    contamination: dict[Text, _Leak]


class _Rates(TypedDict, total=False):
    words: Count
    fertility: Number
    unknown_rate: Number
    single_character_rate: Number
    unused_rate: Number
    entries: Count
    unused: Count


class _Trained(TypedDict, total=False):
    documents: Count
    bytes: Count
    share: Number


class _Vocab(_Rates, total=False):
    sample_words: Count
    sample_tokens: Count
    scripts: dict[Text, _Rates]
    trained_on: _Trained
    vocabulary: Text
    lower_case: Flag
    strip_accents: Flag


class _Sequences(TypedDict):
    lengths: list[Count]
    mean_length: Number
    label_share: Score


class _HeldOut(TypedDict, total=False):
    """What a phase holds out in a run without a corpus."""

    examples: Count
    documents: Count
    share: Number | None
    files: list[Text]


class _Split(TypedDict, total=False):
    sequences: dict[Text, _Sequences]
    documents: Count
    sentences: Count
    tokens: Count
    rows: dict[Text, list[Count]]
    unigram_loss: Score
    phases: dict[Text, _HeldOut]


class _Foreign(TypedDict, total=False):
    kind: Text
    examples: Count
    static: Flag


class _Examples(TypedDict, total=False):
    vocabulary: Text
    shards: Count
    documents: Count
    train: _Split
    heldout: _Split
    heldout_contamination: _Leak
    imported: dict[Text, _Foreign]
    text: _Rates


class _Network(TypedDict):
    num_hidden_layers: Count
    hidden_size: Count
    num_attention_heads: Count
    intermediate_size: Count
    max_position_embeddings: Count
    vocab_size: Count
    hidden_dropout_prob: Number
    next_sentence: Flag


class _Start(TypedDict):
    from_step: Count
    ranks: Count
    threads: Count
    device: Text
    machine: Text
    torch: Text


class _Unfinished(TypedDict):
    checkpoint: Text
    step: Count
    steps: Count
    phase: Count


class _Train(TypedDict, total=False):
    parameters: Count
    network: _Network
    init: dict[Text, Text] | None
    steps: Count
    phase_steps: list[Count]
    phase_ends: list[Count]
    sequences_seen: Count
    tokens_seen: Count
    train_seconds: Number
    tokens_per_second: Number
    heldout: dict[Text, Score]
    extensions: list[dict[Text, Count]]
    lives: list[_Start]
    unfinished: _Unfinished
    vocabulary: Text
    weights: Text
    peak_memory_bytes: Count | None
    device: Text
    ranks: Count
    threads: Count
    torch: Text


class _Evaluate(TypedDict, total=False):
    mlm_loss: Score
    mlm_accuracy: Score
    nsp_loss: Score
    nsp_accuracy: Score
    nsp_majority: Score
    nsp_label_share: Score
    untrained: Flag
    unfinished: _Unfinished
    perplexity: Score
    unigram_loss: Score
    commonest_accuracy: Score
    commonest_token: Text
    predictions: Count
    sequences: Count


class _Export(TypedDict, total=False):
    architecture: Text
    vocab_size: Count
    parameters: Count
    texts_compared: Count
    mlm_difference: Number
    nsp_difference: Number
    predictions_compared: Count
    transformers: Text
    unfinished: _Unfinished


class _Row(TypedDict, total=False):
    """A row of metrics.jsonl."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    phase: Count
    step: Count
    steps: Count
    total_steps: Required[Count]
    saved: Flag
    mlm_loss: Score
    learning_rate: Number
    tokens_per_second: Number
    heldout_mlm_loss: Score
    heldout_mlm_accuracy: Score
    heldout_nsp_accuracy: Score


class _Guess(TypedDict):
    token: Text
    probability: Annotated[Number, Field(ge=0, le=1)]


class _Prediction(TypedDict, total=False):
    source: Text
    text: Required[Text]
    gold: Required[Text | None]
    top: Required[list[_Guess]]


ROW = TypeAdapter(_Row)
PREDICTIONS = TypeAdapter(list[_Prediction])
_COUNTS: dict[str, Any] = {
    "corpus": _Corpus,
    "vocab": _Vocab,
    "examples": _Examples,
    "train": _Train,
    "evaluate": _Evaluate,
    "export": _Export,
}


@cache
def counts_of(stage: str) -> TypeAdapter[Any] | None:
    """What the counts of a stage must be; None where they are not looked at.

    Made when first asked for, as it takes longer than the rest of this module.
    """
    return TypeAdapter(_COUNTS[stage]) if stage in _COUNTS else None
