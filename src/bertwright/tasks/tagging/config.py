"""The task `tagging` in a recipe. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.examples.own_files import OwnFiles
from bertwright.examples.problems import Problems
from bertwright.tasks.tagging.schemes import LearnedScheme, all_tags, find_scheme, read_entities, split_tag, write_tags
from bertwright.tasks.task import TaskSettings

if TYPE_CHECKING:
    from bertwright.model.config import ModelConfig, NetworkConfig
    from bertwright.tasks.tagging.files import Sentence


@dataclass(frozen=True)
class TaggedFiles(OwnFiles):
    """How to read files of tagged words."""

    unit: ClassVar[str] = "sentences"
    suffixes: ClassVar[tuple[str, ...]] = (
        *(".conll", ".conllu", ".conllup", ".iob", ".iob2", ".iob1", ".bio", ".bioes", ".tsv", ".txt"),
        *(".jsonl", ".json", ".parquet", ".arrow"),
    )

    tags: tuple[str, ...]
    scheme: LearnedScheme | None
    """How the tags mark entities; None: every word has a tag of its own, such as its part of speech."""
    word: str
    tag: str
    """Columns of the files, by name or number from 1; empty: guessed."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The tags that are learned."""
        return self.tags

    @property
    def settings(self) -> Mapping[str, Any]:
        """As `OwnFiles.settings`."""
        return {"labels": list(self.labels), "scheme": self.scheme, "word": self.word, "tag": self.tag}

    def read(self, file: Path, problems: Problems) -> Iterator[Sentence]:
        """As `OwnFiles.read`; entities are converted to the scheme that is learned."""
        from bertwright.tasks.tagging.files import Layout, Sentence, read_sentences  # not needed by other tasks

        _, found = read_sentences(file, Layout(self.word, self.tag), problems)
        if self.scheme is None:
            yield from (_known(sentence, self.labels, problems) for sentence in found)
            return
        sentences = list(found)
        scheme = find_scheme(sentence.tags for sentence in sentences) or "iob2"
        for words, tags, place in sentences:
            entities, broken = read_entities(tags, scheme)
            for i in broken:
                problems.add(f"tags break the scheme {scheme} and are repaired", f"{place}: {words[i]!r} {tags[i]}")
            written = write_tags(entities, len(words), self.scheme)
            # What is no entity tag is no answer either: such a word is neither learned nor scored.
            kept = [new if split_tag(old) else old for old, new in zip(tags, written, strict=True)]
            yield _known(Sentence(words, kept, place), self.labels, problems)

    def texts(self, example: Sentence) -> Sequence[str]:
        """As `OwnFiles.texts`."""
        return example.words

    def label(self, example: Sentence) -> str:
        """As `OwnFiles.label`."""
        return " ".join(example.tags)


def _known(sentence: Sentence, labels: Sequence[str], problems: Problems) -> Sentence:
    """The sentence, after counting its tags that are not learned."""
    for word, tag in zip(sentence.words, sentence.tags, strict=True):
        if tag and tag not in labels:
            problems.add("words have a tag that is not learned", f"{sentence.place}: {word!r} {tag}")
    return sentence


class TaggingConfig(TaskSettings):
    """Predicts a tag for each word of a sentence (Devlin et al. 2019 §5.3): entities, or parts of speech. The tag of a
    word is read at its first piece. The data of the phases are files of tagged words; training starts from random
    weights, or from the pre-trained network named by `train.init_from`."""

    kind: Literal["tagging"] = "tagging"
    """Names this objective."""
    entities: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Types of entities, such as PER and LOC; give either these or `tags`."""
    scheme: LearnedScheme = "iob2"
    """How the learned tags mark entities, whichever scheme the files have: `iob2` has two tags for each type, `bioes`
    four, of which the last word of an entity and an entity of one word have their own."""
    tags: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Tags that mark no entities, such as parts of speech."""
    word: str = ""
    """Column or key of the words: a name, or a number from 1; empty: guessed, and said in the log."""
    tag: str = ""
    """Column or key of the tags: a name such as upos, or a number from 1; empty: guessed, and said in the log."""

    @model_validator(mode="after")
    def _entities_or_tags(self) -> Self:
        if bool(self.entities) == bool(self.tags):
            raise ValueError(
                "give exactly one of entities (their types, such as PER) and tags (such as parts of speech); got "
                f"entities={list(self.entities)}, tags={list(self.tags)}"
            )
        if self.tags and self.scheme != "iob2":
            raise ValueError("scheme says how tags mark entities, and tags marks none: leave it out")
        for names in (self.entities, self.tags):
            if len(set(names)) < len(names):
                raise ValueError(f"{list(names)} contains a name twice")
        if self.tags and all(map(split_tag, self.tags)):
            raise ValueError(f"tags {list(self.tags)} mark entities: give the types of entities instead, such as PER")
        return self

    @property
    def files(self) -> TaggedFiles:
        """As `TaskSettings.files`."""
        learned = all_tags(self.entities, self.scheme) if self.entities else self.tags
        return TaggedFiles(learned, self.scheme if self.entities else None, self.word, self.tag)

    def next_sentence(self, pairs: bool) -> bool:
        """As `TaskSettings.next_sentence`: a classifier of tokens replaces the pre-training heads."""
        return False

    def network(self, model: ModelConfig, entries: int, pairs: bool) -> NetworkConfig:
        """As `TaskSettings.network`: with a classifier of tokens in place of the pre-training heads."""
        return model.resolve(entries, False, self.files.labels, "token")
