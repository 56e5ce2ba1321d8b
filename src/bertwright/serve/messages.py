"""What a client sends and gets, as types: they validate requests, and are the schemas of the OpenAPI document.

A field that takes a text takes a list of texts, too; results are always a list, in the order of the texts. Offsets
count characters (Unicode code points) of the text as it was sent.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from bertwright.vocab.entries import MASK

MOST_TEXTS = 2048
LONGEST_ID = 1000
_LONGEST_WITH_ALTERNATIVES = 1000

PATTERNS = {
    re.escape(MASK): f"write {MASK} in a text, where a word is to be guessed",
    r"\S": "a text is empty",
}
"""What texts must have, as regular expressions of JSON Schema, and what to say if one does not."""
_WITH_BLANK, _WITH_WORDS = PATTERNS


def _whole(value: Any) -> Any:
    """A number such as 5.0, which is an integer to JSON Schema, as one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = BeforeValidator(_whole)
_Top = Annotated[int, Field(ge=1, le=100), _WHOLE]
_Id = Annotated[int, Field(ge=0), _WHOLE]
_Text = Annotated[str, Field(max_length=1_000_000)]
_Texts = _Text | Annotated[list[_Text], Field(min_length=1, max_length=MOST_TEXTS)]
_Blanks = Annotated[_Text, Field(pattern=_WITH_BLANK)]
_Words = Annotated[_Text, Field(pattern=_WITH_WORDS)]
_SomeWords = _Words | Annotated[list[_Words], Field(min_length=1, max_length=MOST_TEXTS)]


class Request(BaseModel):
    """What all requests have."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = Field(
        None, max_length=LONGEST_ID, description="The id of a model; default: the first one that can do it."
    )


def texts_of(given: str | list[str]) -> list[str]:
    """A text or several, as several."""
    return [given] if isinstance(given, str) else given


class FillMask(Request):
    """Texts with blanks."""

    text: _Blanks | Annotated[list[_Blanks], Field(min_length=1, max_length=MOST_TEXTS)] = Field(
        description=f"A text with {MASK} for each blank, or several.", examples=[f"A {MASK} barks."]
    )
    top: _Top = Field(5, description="Words for each blank.")


class Alternatives(Request):
    """Texts whose words are asked one by one."""

    text: (
        Annotated[str, Field(max_length=_LONGEST_WITH_ALTERNATIVES)]
        | Annotated[
            list[Annotated[str, Field(max_length=_LONGEST_WITH_ALTERNATIVES)]], Field(min_length=1, max_length=16)
        ]
    ) = Field(description="A text, or several; it is read once for each word.")
    top: _Top = Field(5, description="Words for each place.")


class Tokenize(Request):
    """Texts to divide."""

    text: _Texts = Field(description="A text, or several.")


class Encode(Request):
    """Texts whose vectors are wanted."""

    text: _Texts = Field(description="A text, or several.")
    role: Literal["query", "document"] | None = Field(
        None, description="What a text is, for a model that was trained to read a prompt before it."
    )


class Similar(Request):
    """A text, and others to compare it with."""

    query: _Text
    texts: list[_Text] = Field(min_length=1, max_length=MOST_TEXTS)
    top: Annotated[int, Field(ge=1, le=MOST_TEXTS), _WHOLE] = Field(5, description="Texts to return.")


class Neighbours(Request):
    """A word."""

    word: str = Field(min_length=1, max_length=200)
    top: _Top = Field(10)


class Classify(Request):
    """Texts, or pairs of texts."""

    text: _Texts = Field(description="A text, or several.")
    pair: _Texts | None = Field(None, description="The second text of each, for a model that reads pairs.")

    @model_validator(mode="after")
    def _has_pairs(self) -> Classify:
        if self.pair is not None and len(texts_of(self.pair)) != len(texts_of(self.text)):
            raise ValueError("there are not as many pairs as texts: give each text its second one")
        return self


_Sentence = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(min_length=1, max_length=10_000)]


class Tag(Request):
    """Texts, or their words."""

    text: _SomeWords | None = Field(None, description="A text, or several, divided at its spaces.")
    words: _Sentence | Annotated[list[_Sentence], Field(min_length=1, max_length=MOST_TEXTS)] | None = Field(
        None, description="The words of a text, or of several, instead of text."
    )

    @model_validator(mode="after")
    def _has_one(self) -> Tag:
        if (self.text is None) == (self.words is None):
            raise ValueError("give either text or words")
        return self


class Answer(Request):
    """Questions, each with the text that has its answer."""

    question: _SomeWords
    context: _SomeWords

    @model_validator(mode="after")
    def _are_asked(self) -> Answer:
        questions, contexts = texts_of(self.question), texts_of(self.context)
        if len(questions) != len(contexts):
            raise ValueError("there are not as many contexts as questions: give each question its own")
        return self


class Choose(Request):
    """A text, and what may follow it."""

    text: _Text
    choices: list[_Text] = Field(min_length=2, max_length=64)


_Written = Annotated[_Text, Field(min_length=1)]


class Embeddings(Request):
    """As OpenAI's embeddings."""

    input: (
        _Written
        | Annotated[list[_Written], Field(min_length=1, max_length=MOST_TEXTS)]
        | Annotated[list[_Id], Field(min_length=1, max_length=100_000)]
        | Annotated[
            list[Annotated[list[_Id], Field(min_length=1, max_length=100_000)]],
            Field(min_length=1, max_length=MOST_TEXTS),
        ]
    ) = Field(description="A text, several, the ids of one's tokens, or of several.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1), _WHOLE] | None = Field(
        None,
        description="The first numbers of each vector alone, divided by their length; see embed --dimensions.",
    )
    user: str | None = Field(None, max_length=LONGEST_ID, description="Read by nobody; as OpenAI's.")


class Word(TypedDict):
    """An entry of the vocabulary; ## at its beginning: it continues a word."""

    word: str
    probability: float


class Blank(TypedDict):
    """A blank of a text, and the words for it, best first; none if it lies beyond what the model reads."""

    begin: int
    end: int
    words: list[Word]


class Filled(TypedDict):
    """A text with its blanks."""

    text: str
    blanks: list[Blank]


class WordInText(TypedDict):
    """A word of a text, and what the model would put in its place if it were one blank."""

    begin: int
    end: int
    word: str
    pieces: list[str]
    probability: NotRequired[float]
    """That of the word; absent if it has several pieces, because a blank is one."""
    alternatives: list[Word]


class TextOfWords(TypedDict):
    """A text, with its words of letters or digits."""

    text: str
    words: list[WordInText]


class Token(TypedDict):
    """A piece of a text."""

    piece: str
    id: int
    begin: int
    end: int


class Tokens(TypedDict):
    """The pieces of a text."""

    tokens: list[Token]


class SimilarText(TypedDict):
    """A text, its index, and its cosine to the query."""

    index: int
    text: str
    score: float


class Neighbour(TypedDict):
    """An entry of the vocabulary, and its cosine to the word."""

    word: str
    score: float


class Answered(TypedDict):
    """What each answer has."""

    model: str


class FillMaskAnswer(Answered):
    """Of /v1/fill-mask."""

    results: list[Filled]


class AlternativesAnswer(Answered):
    """Of /v1/alternatives."""

    results: list[TextOfWords]


class TokenizeAnswer(Answered):
    """Of /v1/tokenize."""

    results: list[Tokens]


class EncodeAnswer(Answered):
    """Of /v1/encode."""

    vectors: list[list[float]]


class SimilarAnswer(Answered):
    """Of /v1/similar, best first."""

    results: list[SimilarText]


class NeighboursAnswer(Answered):
    """Of /v1/neighbours, best first."""

    results: list[Neighbour]


class DetailsAnswer(Answered):
    """Of /v1/classify, /v1/tag, /v1/answer and /v1/choose: for each question what `predict --json` gives."""

    results: list[dict[str, Any]]


class Embedding(TypedDict):
    """A vector; as base64 its numbers are float32, little-endian."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(TypedDict):
    """Tokens that were read, [CLS] and [SEP] not counted."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(Answered):
    """As OpenAI's."""

    object: Literal["list"]
    data: list[Embedding]
    usage: Usage


class ModelRow(TypedDict):
    """A model, and what it can do."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: Literal["bertwright"]
    title: str
    tasks: list[str]
    labels: list[str]
    positions: int
    mask: str
    language: str
    examples: list[str]
    """Texts with blanks."""
    hidden: list[list[str | None]]
    """Of each example, the words that belong in its blanks, as far as they are known."""


class Models(TypedDict):
    """All models, the default one first."""

    object: Literal["list"]
    data: list[ModelRow]


class Error(TypedDict):
    """What is wrong, and with which field."""

    message: str
    type: str
    param: str | None
    code: str | None


class Refused(TypedDict):
    """Any other answer than 200."""

    error: Error
