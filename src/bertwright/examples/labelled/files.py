"""Files of labelled texts, as a task's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bertwright.examples.labelled.config import SUFFIXES, LabelledTexts, missing_glue
from bertwright.examples.own_files import OwnFiles
from bertwright.examples.problems import Problems

if TYPE_CHECKING:
    from bertwright.examples.labelled.read import Text
    from bertwright.examples.labelled.sizes import TextSizes


@dataclass(frozen=True)
class TextFiles(OwnFiles):
    """See `OwnFiles`; `described` says how to read them."""

    unit: ClassVar[str] = "texts"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES

    described: LabelledTexts

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes; a single name: labels are numbers."""
        return self.described.labels

    @property
    def heldout(self) -> tuple[str, ...]:
        """As `OwnFiles.heldout`."""
        return self.described.heldout

    @property
    def published(self) -> int:
        """As `OwnFiles.published`."""
        return self.described.published

    @property
    def pairs(self) -> bool:
        """As `OwnFiles.pairs`."""
        return self.described.pairs

    @property
    def settings(self) -> Mapping[str, Any]:
        """As `OwnFiles.settings`."""
        columns = [list(each.names) for each in self.described.columns]
        several = {"several": True} if self.described.several else {}
        return {"labels": list(self.labels), "columns": columns, "heldout": list(self.heldout), **several}

    def read(self, file: Path, problems: Problems) -> Iterator[Text]:
        """As `OwnFiles.read`."""
        from bertwright.examples.labelled.read import read_texts  # not needed to check a recipe of another task

        return read_texts(file, self.described, problems)

    def texts(self, example: Text) -> Sequence[str]:
        """As `OwnFiles.texts`."""
        return example[:2]

    def label(self, example: Text) -> str:
        """As `OwnFiles.label`."""
        return repr(example.label)

    def sizes(self, file: Path) -> TextSizes:
        """As `OwnFiles.sizes`; of a large file, estimated from a part of it."""
        from bertwright.examples.labelled.sizes import text_sizes  # needs numpy

        return text_sizes(file, self.described)

    def missing(self, path: Path) -> str:
        """As `OwnFiles.missing`: a task of GLUE that is not here."""
        return missing_glue(path)
