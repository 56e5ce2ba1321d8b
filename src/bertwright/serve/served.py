"""A model as it is served: each method answers several questions in one pass, in the thread of the model.

Names carry shapes: V vocabulary, H hidden, P blanks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import combining

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from bertwright.model.classifier import Classifier
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.text_encoder import Encoder
from bertwright.predict.answerers import Names, answerer_of
from bertwright.predict.source import Answerer
from bertwright.serve.messages import ModelRow, Neighbour, Token
from bertwright.tasks.pretraining.config import GAP
from bertwright.vocab.entries import MASK, SPECIALS

_TASKS = {"sequence": "classify", "several": "classify", "token": "tag", "span": "answer", "choice": "choose"}
"""What a classifier does, by its head."""
_TASKS_OF_ALL = ("encode", "similar", "neighbours", "tokenize")
_CHARACTERS = 4
"""Of a token, about."""
_ALL = 2**20


class Guess(NamedTuple):
    """A text with blanks."""

    text: str
    top: int
    blank: int | None = None
    """The index of the only blank that is asked for; None: all."""
    entry: int | None = None
    """An entry whose probability there is wanted, too."""


class Guessed(NamedTuple):
    """The words for a blank."""

    words: list[tuple[str, float]]
    probability: float | None
    """That of the entry that was asked for."""


class Encoded(NamedTuple):
    """A text as a vector."""

    vector: NDArray[np.float32]
    """[H]"""
    tokens: int
    """Those of the text, without [CLS] and [SEP]."""


@dataclass(frozen=True)
class About:
    """What is known of a model besides its network."""

    title: str = ""
    language: str = ""
    examples: Sequence[str] = ()
    """Texts with blanks, as in recipes: the word that belongs in one may be given."""
    created: int = 0
    """Seconds since 1970."""


class Served:
    """A model with a name."""

    def __init__(self, name: str, folder: Path, encoder: Encoder, about: About, lacks: Collection[str] = ()) -> None:
        """`lacks`: tasks that it cannot do, though its network could."""
        self.name, self.encoder, self.about, self._lacks = name, encoder, about, lacks
        tokenizer = encoder.tokenizer.fast
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.answerer: Answerer | None = None
        if isinstance(encoder.model, Classifier):
            self.answerer = answerer_of(folder, encoder, Names(), None)

    @property
    def prompts(self) -> Mapping[str, str]:
        """As `Encoder.prompts`."""
        return self.encoder.prompts

    @property
    def tasks(self) -> list[str]:
        """What it does."""
        model = self.encoder.model
        own = ["fill-mask"] if isinstance(model, PreTrainingModel) else []
        if self.answerer is not None:
            own = [_TASKS[model.config.head]]
        return [task for task in (*own, *_TASKS_OF_ALL) if task not in self._lacks]

    @property
    def row(self) -> ModelRow:
        """Its row among all models."""
        config, about = self.encoder.model.config, self.about
        return ModelRow(
            id=self.name,
            object="model",
            created=about.created,
            owned_by="bertwright",
            title=about.title or self.name,
            tasks=self.tasks,
            labels=list(config.labels),
            positions=config.max_position_embeddings,
            mask=MASK,
            language=about.language,
            examples=[GAP.sub(MASK, line) for line in about.examples],
            hidden=[[gap[1] for gap in GAP.finditer(line)] for line in about.examples],
        )

    def tokens_of(self, *texts: str) -> int:
        """About the tokens of a question, without reading it: what it costs."""
        return min(2 + sum(map(len, texts)) // _CHARACTERS, self.encoder.model.config.max_position_embeddings)

    def guess(self, some: Sequence[Guess]) -> list[list[Guessed]]:
        """The words for the blanks of texts, as far as the model reads them."""
        vocabulary, top = self.encoder.tokenizer.vocabulary, max(each.top for each in some)
        found: list[list[Guessed]] = [[] for _ in some]
        for places, of_text_P, p_PV in self.encoder.mask_probabilities([each.text for each in some], _ALL):
            best = p_PV.topk(min(top, p_PV.shape[1]))
            seen = [0] * len(places)
            rows = zip(of_text_P, best.indices.tolist(), best.values.tolist(), strict=True)
            for row, (of, ids, shares) in enumerate(rows):
                asked, number = some[places[of]], seen[of]
                seen[of] += 1
                if asked.blank in (None, number):
                    words = [vocabulary[i] for i in ids[: asked.top]]
                    share = None if asked.entry is None else float(p_PV[row, asked.entry])
                    found[places[of]].append(Guessed(list(zip(words, shares, strict=False)), share))
        return found

    def tokenize(self, some: Sequence[str]) -> list[list[Token]]:
        """The tokens of texts, with their places."""
        vocabulary = self.encoder.tokenizer.vocabulary
        return [
            [
                Token(piece=vocabulary[i], id=i, begin=begin, end=end)
                for i, (begin, end) in zip(each.ids, _places(text, each.offsets), strict=True)
            ]
            for text, each in zip(
                some, self.encoder.tokenizer.fast.encode_batch(list(some), add_special_tokens=False), strict=True
            )
        ]

    def encode(self, some: Sequence[str]) -> list[Encoded]:
        """The vectors of texts."""
        _, counts = self.encoder.tokenizer.encode_texts(some)
        return list(map(Encoded, self.encoder.encode(some, _ALL), counts.tolist()))

    def encode_ids(self, some: Sequence[Sequence[int]]) -> list[Encoded]:
        """The vectors of texts given as the ids of their tokens."""
        return list(map(Encoded, self.encoder.encode_ids(some, _ALL), map(len, some)))

    def answer(self, some: Sequence[Any]) -> list[Mapping[str, Any]]:
        """What the head for a task answers, as `predict --json` writes it."""
        assert self.answerer is not None
        return [each.details for each in self.answerer.answer(some)]

    def neighbours(self, some: Sequence[tuple[str, int]]) -> list[list[Neighbour]]:
        """The entries whose input embeddings are most like those of words, each with how many are wanted; the embedding
        of a word of several pieces is their mean."""
        return [self._neighbours(word, top) for word, top in some]

    def _neighbours(self, word: str, top: int) -> list[Neighbour]:
        flat, _ = self.encoder.tokenizer.encode_texts([word])
        ids = torch.from_numpy(flat.astype(np.int64))
        if not len(ids):
            return []
        with torch.inference_mode():
            wanted_H = normalize(self.encoder.model.encoder.token_weight[ids].float().mean(0), dim=0)
            cosine_V = (self._directions_VH @ wanted_H.to(self._directions_VH.device)).masked_fill(self._hidden_V, -2)
            cosine_V[ids] = -2
            best = cosine_V.topk(min(top, len(cosine_V)))
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [Neighbour(word=self.encoder.tokenizer.vocabulary[i], score=score) for i, score in rows if score > -2]

    @cached_property
    def _directions_VH(self) -> Tensor:
        weights = self.encoder.model.encoder.token_weight[: len(self.encoder.tokenizer.vocabulary)]
        with torch.inference_mode():
            return normalize(weights.float(), dim=-1)

    @cached_property
    def _hidden_V(self) -> Tensor:
        """Which entries are nobody's neighbours."""
        entries = self.encoder.tokenizer.vocabulary
        hidden = [entry in SPECIALS or entry.startswith("[unused") for entry in entries]
        return torch.tensor(hidden, device=self._directions_VH.device)


def _places(text: str, offsets: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield where tokens begin and end. The library leaves out accents that it has joined with their letters."""
    following = [begin for begin, _ in offsets[1:]] + [len(text)]
    for (begin, end), limit in zip(offsets, following, strict=False):
        while end < limit and combining(text[end]):
            end += 1
        yield begin, end
