"""What can be asked of a model: each operation with its request and its answer, and how one becomes the other."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertwright.serve import messages
from bertwright.serve.messages import Blank, Filled, Request, TextOfWords, Token, Word, WordInText, texts_of
from bertwright.serve.passes import Passes
from bertwright.serve.served import Encoded, Guess, Guessed, Served
from bertwright.vocab.entries import MASK

_MASK = re.compile(re.escape(MASK))
_WORD = re.compile(r"\w")
_MOST_WORDS = 200
_MOST_GUESSES = 200_000
"""Words for all blanks of a request: an answer of many times its size would fill the memory."""
Body = Mapping[str, Any]
"""An answer, without the name of the model."""


class RefusedError(Exception):
    """A request that a model cannot answer; the message is for the client."""

    def __init__(self, message: str, param: str, status: int = 422, code: str | None = None) -> None:
        super().__init__(message)
        self.param, self.status, self.code = param, status, code


@dataclass(frozen=True)
class Asked:
    """A request that is valid, with its model."""

    request: Any
    model: Served
    passes: Passes

    async def compute(
        self, of: Callable[[Any], Any], items: Sequence[Any], texts: Sequence[Sequence[str]]
    ) -> list[Any]:
        """The answers of a method of the model to `items`, which consist of these `texts`."""
        return await self.passes.compute(of, items, [self.model.tokens_of(*each) for each in texts])


@dataclass(frozen=True)
class Operation:
    """A path of the interface."""

    path: str
    summary: str
    task: str
    """What a model must be able to do."""
    request: type[Request]
    answer: Any
    """The type of the answer."""
    do: Callable[[Asked], Awaitable[Body]]


async def _fill_masks(asked: Asked) -> Body:
    texts, top = texts_of(asked.request.text), asked.request.top
    if (blanks := sum(text.count(MASK) for text in texts)) * top > _MOST_GUESSES:
        raise RefusedError(f"there are {blanks} blanks: ask for {_MOST_GUESSES // top} at once at most.", "text")
    items = [Guess(text, top) for text in texts]
    found = await asked.compute(asked.model.guess, items, [[text] for text in texts])
    return {"results": [_filled(text, guessed) for text, guessed in zip(texts, found, strict=True)]}


def _filled(text: str, found: Sequence[Guessed]) -> Filled:
    """The blanks of a text; those beyond what the model reads have no words."""
    words = [_words(each) for each in found]
    blanks = [
        Blank(begin=place.start(), end=place.end(), words=words[number] if number < len(words) else [])
        for number, place in enumerate(_MASK.finditer(text))
    ]
    return Filled(text=text, blanks=blanks)


def _words(found: Guessed) -> list[Word]:
    return [Word(word=word, probability=share) for word, share in found.words]


async def _alternatives(asked: Asked) -> Body:
    """The words of a text, each as if it were one blank: a word of several pieces has alternatives, too, but no
    probability. The text is read once for each word, in as many passes as that takes."""
    texts = texts_of(asked.request.text)
    divided = await asked.compute(asked.model.tokenize, texts, [[text] for text in texts])
    places: list[tuple[int, WordInText, Guess]] = []
    for number, (text, tokens) in enumerate(zip(texts, divided, strict=True)):
        places += [(number, *_blanked(text, pieces, asked.request.top)) for pieces in _by_word(text, tokens)]
    if len(places) > _MOST_WORDS:
        raise RefusedError(f"there are {len(places)} words: ask for {_MOST_WORDS} at once at most.", "text")
    guesses = [guess for _, _, guess in places]
    found = await asked.compute(asked.model.guess, guesses, [[guess.text] for guess in guesses]) if guesses else []
    results = [TextOfWords(text=text, words=[]) for text in texts]
    for (number, word, _), guessed in zip(places, found, strict=True):
        if guessed:  # else it lies beyond what the model reads
            word["alternatives"] = _words(guessed[0])
            if guessed[0].probability is not None:
                word["probability"] = guessed[0].probability
        results[number]["words"].append(word)
    return {"results": results}


def _by_word(text: str, tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each word of letters or digits."""
    words: list[list[Token]] = []
    for token in tokens:
        if token["piece"].startswith("##") and words:
            words[-1].append(token)
        else:
            words.append([token])
    return [
        word for word in words if word[0]["piece"] != MASK and _WORD.search(text[word[0]["begin"] : word[-1]["end"]])
    ]


def _blanked(text: str, pieces: Sequence[Token], top: int) -> tuple[WordInText, Guess]:
    """A word, and its text with a blank in its place."""
    begin, end = pieces[0]["begin"], pieces[-1]["end"]
    word = WordInText(
        begin=begin, end=end, word=text[begin:end], pieces=[token["piece"] for token in pieces], alternatives=[]
    )
    blank = len(_MASK.findall(text, 0, begin))
    entry = pieces[0]["id"] if len(pieces) == 1 else None
    return word, Guess(f"{text[:begin]}{MASK}{text[end:]}", top, blank, entry)


async def _tokenize(asked: Asked) -> Body:
    texts = texts_of(asked.request.text)
    found = await asked.compute(asked.model.tokenize, texts, [[text] for text in texts])
    return {"results": [{"tokens": tokens} for tokens in found]}


async def _encode(asked: Asked) -> Body:
    prompt = asked.model.prompts.get(asked.request.role or "", "")
    texts = [prompt + text for text in texts_of(asked.request.text)]
    found: list[Encoded] = await asked.compute(asked.model.encode, texts, [[text] for text in texts])
    return {"vectors": [each.vector.tolist() for each in found]}


async def _similar(asked: Asked) -> Body:
    """The texts whose vectors have the largest cosines to that of the query."""
    request, prompts = asked.request, asked.model.prompts
    texts = [prompts.get("query", "") + request.query]
    texts += [prompts.get("document", "") + text for text in request.texts]
    found: list[Encoded] = await asked.compute(asked.model.encode, texts, [[text] for text in texts])
    vectors_NH = np.stack([each.vector for each in found])
    vectors_NH /= np.maximum(np.linalg.norm(vectors_NH, axis=1, keepdims=True), 1e-12)
    scores_N = vectors_NH[1:] @ vectors_NH[0]
    best = np.argsort(-scores_N, kind="stable")[: request.top].tolist()
    return {"results": [{"index": i, "text": request.texts[i], "score": float(scores_N[i])} for i in best]}


async def _neighbours(asked: Asked) -> Body:
    word = asked.request.word
    (found,) = await asked.compute(asked.model.neighbours, [(word, asked.request.top)], [[word]])
    if not found:
        raise RefusedError("the word has no letters that the model reads.", "word")
    return {"results": found}


async def _classify(asked: Asked) -> Body:
    questions: list[Any] = texts_of(asked.request.text)
    if asked.request.pair is not None:
        questions = list(zip(questions, texts_of(asked.request.pair), strict=True))
    texts = [[each] if isinstance(each, str) else each for each in questions]
    return {"results": await asked.compute(asked.model.answer, questions, texts)}


async def _tag(asked: Asked) -> Body:
    words = asked.request.words
    if words is None:
        words = [text.split() for text in texts_of(asked.request.text)]
    elif isinstance(words[0], str):
        words = [words]
    return {"results": await asked.compute(asked.model.answer, words, [[" ".join(each)] for each in words])}


async def _answer(asked: Asked) -> Body:
    questions = list(zip(texts_of(asked.request.question), texts_of(asked.request.context), strict=True))
    return {"results": await asked.compute(asked.model.answer, questions, questions)}


async def _choose(asked: Asked) -> Body:
    text, choices = asked.request.text, asked.request.choices
    question = (text, choices, choices)
    return {"results": await asked.compute(asked.model.answer, [question], [[*(text for _ in choices), *choices]])}


OPERATIONS = (
    Operation(
        "/v1/fill-mask", "Words for blanks", "fill-mask", messages.FillMask, messages.FillMaskAnswer, _fill_masks
    ),
    Operation(
        "/v1/alternatives",
        "For each word of a text, what the model would put in its place",
        "fill-mask",
        messages.Alternatives,
        messages.AlternativesAnswer,
        _alternatives,
    ),
    Operation("/v1/tokenize", "Pieces of texts", "tokenize", messages.Tokenize, messages.TokenizeAnswer, _tokenize),
    Operation("/v1/encode", "Vectors of texts", "encode", messages.Encode, messages.EncodeAnswer, _encode),
    Operation(
        "/v1/similar", "The texts that are most like one", "similar", messages.Similar, messages.SimilarAnswer, _similar
    ),
    Operation(
        "/v1/neighbours",
        "The words whose embeddings are most like that of a word",
        "neighbours",
        messages.Neighbours,
        messages.NeighboursAnswer,
        _neighbours,
    ),
    Operation("/v1/classify", "Classes of texts", "classify", messages.Classify, messages.DetailsAnswer, _classify),
    Operation("/v1/tag", "Tags of words", "tag", messages.Tag, messages.DetailsAnswer, _tag),
    Operation("/v1/answer", "Answers from texts", "answer", messages.Answer, messages.DetailsAnswer, _answer),
    Operation("/v1/choose", "What fits best", "choose", messages.Choose, messages.DetailsAnswer, _choose),
)
