"""Draft the recipe as sections of keys, each with its value in TOML and the reason for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bertwright.core.toml_values import value_text
from bertwright.corpus.characters import scripts, spaced
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.download import database
from bertwright.corpus.filter import REASONS
from bertwright.corpus.wikis import wikis
from bertwright.estimate.known_data import KEPT
from bertwright.estimate.machine import Machine
from bertwright.init.answers import Answers
from bertwright.init.dump_sizes import WikiSize
from bertwright.init.texts import Texts

SIZES = ("tiny", "mini", "small", "medium", "base", "large")


@dataclass(frozen=True)
class Request:
    """Everything that a recipe is drafted from."""

    answers: Answers
    wiki: WikiSize
    machine: Machine
    own: Texts | None = None
    """Texts of the user's own, instead of the Wikipedia."""

    @property
    def text_bytes(self) -> float | None:
        """Bytes of text, before the filter if it is a Wikipedia; None if unknown."""
        return self.wiki.text_bytes if self.own is None else self.own.bytes

    @property
    def kept_bytes(self) -> float | None:
        """Bytes of text that the filter keeps; None if unknown."""
        if self.own is not None:
            return self.own.bytes
        return None if self.wiki.text_bytes is None else KEPT * self.wiki.text_bytes

    @property
    def quick(self) -> bool:
        """Whether a first look is requested."""
        return self.answers.quality == "quick"

    @property
    def best(self) -> bool:
        """Whether the newer findings are requested."""
        return self.answers.quality == "best"


def by_muon(request: Request, size: str) -> bool:
    """Whether Muon trains the network: the smallest ones on a CPU, where they see few tokens, learn to use the context
    after 5 to 8 million, with AdamW much later (docs/results.md, "Which settings learn")."""
    return size in ("tiny", "mini") and not request.machine.device.gpu


def is_modern(request: Request, size: str) -> bool:
    """Whether the network is a ModernBERT: for the best quality, and for a first look where it learns so much sooner
    than a BERT that minutes are enough (docs/results.md, "The ladder")."""
    return request.best or (request.quick and by_muon(request, size))


def is_narrow(request: Request, size: str) -> bool:
    """Whether this is a network that learns sooner with wide initial weights, a short warm-up and more masks; a BERT
    `mini` learns later with them (docs/results.md, "The ladder")."""
    return by_muon(request, size) and (size == "tiny" or is_modern(request, size))


def from_text(request: Request, size: str) -> bool:
    """Whether the embeddings start from the text, which allows larger batches and rates: for the networks on which that
    was measured (docs/results.md, "Embeddings from the text")."""
    return is_narrow(request, size) and is_modern(request, size)


_RATE = {"tiny": 1e-3, "mini": 1e-3, "small": 7e-4, "medium": 5e-4, "base": 4e-4, "large": 2e-4}
_MUON_RATE = {"tiny": 3e-3, "mini": 2e-3}
_TEXT_BATCH, _TEXT_RATE = 32, 5e-3
"""Where the embeddings start from the text: measured with a `mini`, and for an hour between the two sizes."""
_MOST_ENTRIES = {"tiny": 8_000, "mini": 16_000}
"""Maximum vocabulary size on a CPU, for networks whose output layer would otherwise take most of the time."""
_LEAST_BATCH = {"tiny": 16, "mini": 16, "small": 32, "medium": 64, "base": 128, "large": 256}
_MOST_BATCH = 4096
_STEPS = 50_000
"""Minimum number of updates before the batch is increased."""
_CASED = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}
# Chinese, Japanese and Korean, each by a script that only this language has (`corpus.characters`).
_MANY_CHARACTERS = {"BOPOMOFO", "HIRAGANA", "HANGUL"}

Line = tuple[str, str, str]
"""Key, value in TOML, reason."""
Section = tuple[str, Sequence[Line]]
"""Header with its brackets, and the lines of the section."""


@dataclass(frozen=True)
class PhaseDraft:
    """One phase: its sequence length, and its share of the training time."""

    length: int
    share: float
    """Share of the training time."""
    tokens: int
    """Maximum number of tokens."""
    hours: float


def draft(request: Request, size: str, phases: Sequence[PhaseDraft]) -> list[Section]:
    """Return the sections of the recipe with a network of this size."""
    tokens = sum(phase.tokens for phase in phases) // 2  # the forecast; the key has twice as many
    return [
        *_corpus(request),
        ("[vocab]", _vocab(request, size)),
        ("[examples]", _examples(request, size)),
        ("[model]", _model(request, size, phases)),
        ("[optim]", _optimizer(request, size)),
        *(("[[train.phases]]", _phase(request, size, phase, tokens)) for phase in phases),
        ("[train]", _train(request, size)),
        ("[evaluate]", [("max_sequences", "4096", "enough held-out sequences for two digits of the loss")]),
    ]


def _corpus(request: Request) -> list[Section]:
    code = request.answers.language
    language: Line = ("language", json.dumps(code), wikis()[code])
    if request.own is None:
        source = f"downloads/{database(code)}-*-pages-articles-multistream.xml.bz2"
        line = ("source", json.dumps(source), "or any other text, or a list of paths: docs/how-to/sources.md")
        return [("[corpus]", [line, language])]
    sources = (("[[corpus.source]]", source_lines(each, "the text to learn from")) for each in request.own.sources)
    return [("[corpus]", [language, *filter_lines(request.own)]), *sources]


def filter_lines(texts: Texts) -> list[Line]:
    """The line that turns the filter off, if it would drop much of the texts."""
    if not texts.filter_is_off:
        return []
    meaning = REASONS[texts.reason].meaning
    why = f"made for wikis, it would drop {texts.dropped:.0%} of this text, most of it as: {meaning}"
    return [("filter.enabled", "false", why)]


def source_lines(source: SourceConfig, why: str) -> list[Line]:
    """The path of a source, its name if it has one, and what a line of it is."""
    lines: list[Line] = [("path", value_text(source.path), why)]
    if source.name:
        lines.append(("name", value_text(source.name), "each source is scored by its name, before and after"))
    if source.lines != "paragraphs":
        lines.append(("lines", value_text(source.lines), "guessed from the first lines: docs/how-to/sources.md"))
    return lines


def _vocab(request: Request, network: str) -> list[Line]:
    code, text = request.answers.language, request.text_bytes
    written = scripts(code)
    # In a small text, few words are frequent enough for an entry of their own.
    size = next((size for least, size in ((2e8, 32_000), (2e7, 16_000), (2e6, 8_000)) if (text or 2e6) >= least), 4_000)
    why = "fewer than the usual 32,000, because the text is small" if size < 32_000 else "the usual number of entries"
    if not request.machine.device.gpu and size > (most := _MOST_ENTRIES.get(network, size)):
        size, why = most, "with more, the output layer would take most of the time of a network this small"
    if written & _MANY_CHARACTERS and size < 16_000:
        size, why = 16_000, "each of the many characters of this script needs an entry"
    cased = "case is kept" if written & _CASED else "this script has no case"
    return [
        ("size", f"{size:_}", why),
        ("lower_case", "false", cased),
        ("strip_accents", "false", "accents are kept: they distinguish words" if spaced(code) else ""),
    ]


def _examples(request: Request, size: str) -> list[Line]:
    text = request.text_bytes or 0
    heldout = 0.005 if text >= 2e8 else 0.01 if text >= 2e7 else 0.05
    held: Line = ("heldout", f"{heldout:g}", "share of the articles that training never sees")
    if is_modern(request, size):
        plan: Line = ("plan", '"full-sentences"', "no pairs: the network has no next-sentence head")
        return [plan, ("passes", "1", "one pass is enough: masks are drawn anew in every epoch"), held]
    # Ten as in the originals (dupe factor); a short training, and one of much text, does not read that many.
    passes = 4 if request.quick or text >= 2e9 else 10
    return [("passes", f"{passes}", "number of times that the text is cut into new pairs"), held]


def _model(request: Request, size: str, phases: Sequence[PhaseDraft]) -> list[Line]:
    lines: list[Line] = []
    if modern := is_modern(request, size):
        why = "this small, it learns to use the context sooner than a BERT" if request.quick else "Warner et al. 2024"
        lines.append(("kind", '"modern"', why))
    lines.append(("size", json.dumps(size), "chosen from the hours and the text: docs/how-to/init.md"))
    longest = max(phase.length for phase in phases)
    if request.quick:
        lines.append(("max_positions", f"{longest}", "no phase has longer sequences"))
    if not modern and (request.quick or by_muon(request, size)):  # without the key, a ModernBERT has none
        what = "a short run" if request.quick else "a network this small"
        lines.append(("dropout", "0.0", f"{what} does not overfit, and learns later with dropout"))
    if is_narrow(request, size):
        lines.append(("initializer_range", "0.06", "0.02 is for wide networks: this one learns twice as soon"))
    if request.machine.device.gpu:
        lines.append(("pad_vocab_to_multiple_of", "64", "a size that is fast on the GPU"))
    return lines


def _optimizer(request: Request, size: str) -> list[Line]:
    if not by_muon(request, size):
        return [("kind", '"adamw"', "")]
    why = "with AdamW, a network this small learns little but word frequencies for a long time"
    lines: list[Line] = [("kind", '"muon"', why)]
    if from_text(request, size):
        half = '[{pattern = "*embeddings.token*", learning_rate_scale = 0.5}]'
        lines.append(("groups", half, "half the rate for embeddings that start from the text"))
    return lines


def _phase(request: Request, size: str, phase: PhaseDraft, tokens: int) -> list[Line]:
    batch = _batch(request, size, phase, tokens)
    usual = _MUON_RATE if by_muon(request, size) else _RATE
    rate = _TEXT_RATE if from_text(request, size) else usual[size]
    lines: list[Line] = [
        ("length", f"{phase.length}", ""),
        ("batch", f"{batch:_}", "sequences per update"),
        _micro_batch(request, phase.length, batch),
        ("learning_rate", f"{rate:.0e}".replace("e-0", "e-"), "halve it if the loss jumps"),
        ("warmup", "0.02" if is_narrow(request, size) else "0.06", ""),
    ]
    if request.best:
        lines.append(
            ("schedule", '{kind = "wsd", decay = 0.15}', "constant at the peak, then falling in the last part")
        )
    lines += _masking(request, size)
    lines.append(("hours", f"{phase.hours:.3g}", "the learning rate follows the time; without this key, the tokens"))
    lines.append(("tokens", f"{phase.tokens:_}", "maximum, even on a faster machine"))
    return lines


def _batch(request: Request, size: str, phase: PhaseDraft, tokens: int) -> int:
    """Return the largest power of two that leaves enough updates; fewer long sequences, for equal tokens per update."""
    batch, ranks = _TEXT_BATCH if from_text(request, size) else _LEAST_BATCH[size], request.machine.ranks
    while batch < _MOST_BATCH and tokens / (2 * batch * 128) >= _STEPS:
        batch *= 2
    batch = max(8, batch * 128 // phase.length)
    # Each rank has the same number of sequences.
    return -(-batch // ranks) * ranks


def _micro_batch(request: Request, length: int, batch: int) -> Line:
    if request.machine.device.gpu:
        return "micro_batch", '"auto"', "as many sequences at once as fit in memory"
    return "micro_batch", f"{min(batch, max(1, 4096 // length))}", "sequences at once; more are not faster on a CPU"


def _masking(request: Request, size: str) -> list[Line]:
    lines: list[Line] = []
    if request.best or is_narrow(request, size):
        lines.append(("masking.rate", "0.3", "more predictions per sequence than BERT's 0.15"))
    elif request.quick:
        lines.append(("masking.rate", "0.25", "more predictions per short sequence"))
    if not request.quick and spaced(request.answers.language):
        lines.append(("masking.unit", '"words"', "whole words, so that the rest of a word does not reveal the answer"))
    return lines


def _train(request: Request, size: str) -> list[Line]:
    device = request.machine.device
    lines: list[Line] = [("heldout_sequences", "1024", "scored ten times in each phase")]
    if from_text(request, size):
        why = "counts which entries are neighbours: in seconds, what takes a million tokens to learn"
        lines.append(("init_embeddings", '"text"', why))
    # Drafted for a processor, but where it runs there may be a GPU, which the default would use.
    if request.answers.machine.strip().lower() != "here" and not device.gpu:
        lines.append(("device", '"cpu"', ""))
    return lines
