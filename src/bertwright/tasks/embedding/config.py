"""The task `embedding` in a recipe. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from bertwright.examples.labelled.config import SUFFIXES
from bertwright.examples.own_files import OwnFiles
from bertwright.examples.problems import Problems
from bertwright.tasks.embedding.files import Layout, Pair, read_pairs
from bertwright.tasks.task import TaskSettings

if TYPE_CHECKING:
    from bertwright.examples.labelled.sizes import TextSizes
    from bertwright.model.config import ModelConfig, NetworkConfig


def _as_columns(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


Names = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_as_columns)]
"""Names of columns; a text is the name of one."""


@dataclass(frozen=True)
class PairFiles(OwnFiles):
    """How to read files of pairs of texts."""

    unit: ClassVar[str] = "pairs"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES
    several_sequences: ClassVar[bool] = True

    layout: Layout
    anchor_prompt: str = ""
    positive_prompt: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """Nothing is predicted but which texts belong together."""
        return ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """As `OwnFiles.settings`."""
        prompts = {"anchor_prompt": self.anchor_prompt, "positive_prompt": self.positive_prompt}
        return {**asdict(self.layout), **{name: prompt for name, prompt in prompts.items() if prompt}}

    def read(self, file: Path, problems: Problems) -> Iterator[Pair]:
        """As `OwnFiles.read`."""
        return read_pairs(file, self.layout, problems)

    def texts(self, example: Pair) -> Sequence[str]:
        """As `OwnFiles.texts`; the same pair with other negatives is a repetition."""
        return example.texts[:2]

    def read_texts(self, example: Pair) -> list[str]:
        """The texts that the network reads: with their prompts."""
        anchor, *others = example.texts
        return [self.anchor_prompt + anchor, *(self.positive_prompt + text for text in others)]

    def held_together(self, example: Pair) -> Sequence[str]:
        """As `OwnFiles.held_together`: the pairs of a group, or else of an anchor."""
        return (example.group or example.anchor,)

    def sizes(self, file: Path) -> TextSizes:
        """As `OwnFiles.sizes`, of the mean text of each pair."""
        import numpy as np  # slow to import, and not needed by pre-training

        from bertwright.examples.labelled.sizes import TextSizes

        found = [self.read_texts(pair) for pair in self.read(file, Problems())]
        sequences = np.array([len(texts) for texts in found], np.int64)
        size = np.array([sum(len(text.encode()) for text in texts) for texts in found], np.int64)
        read = size // np.maximum(sequences, 1)
        return TextSizes(len(found), read, int(read.max(initial=0)), sequences)


class EmbeddingConfig(TaskSettings):
    """Gives texts that belong together similar vectors, and others different ones: among all positives and negatives of
    a step's batch, each anchor is to find its own positive (InfoNCE: van den Oord et al. 2018, Henderson et al. 2017).
    Large batches help; micro-batches bound the memory and change nothing else (GradCache, Gao et al. 2021). The vector
    is the mean of the last hidden states, of length 1. The data of the phases are files of pairs; training starts from
    the pre-trained network named by `train.init_from`. Columns that are not named are found by their names."""

    kind: Literal["embedding"] = "embedding"
    """Names this objective."""
    temperature: float = Field(0.05, gt=0, le=10)
    """What cosines are divided by before the softmax: a lower one puts more weight on the hardest negatives. 0.05 is
    that of SimCSE (Gao, Yao and Chen 2021) and of sentence-transformers."""
    symmetric: bool = False
    """Whether each positive is to find its anchor, too: the loss is then the mean of both directions."""
    dimensions: tuple[Annotated[int, Field(gt=0)], ...] = ()
    """Sizes of vectors that are trained beside the full one, such as [256, 128, 64]: their first numbers are to be
    useful vectors themselves (Matryoshka, Kusupati et al. 2022). The loss is the sum over all sizes."""
    anchor: str = ""
    """Column of the first texts, such as questions; empty: anchor, query, question, sentence1 or title."""
    positive: str = ""
    """Column of the texts that belong to them; empty: positive, answer, document, passage, sentence2 or such."""
    negatives: Names = ()
    """Column with a list of texts that do not belong to the anchor, or a column for each; empty: negatives, negative,
    or negative_1 and so on, if the file has them."""
    group: str = ""
    """Column that names what pairs have in common, such as an article: those of one group are never each other's
    negatives. Empty: group, if the file has it."""
    anchor_prompt: str = ""
    """Text that is read before each anchor, such as "query: "."""
    positive_prompt: str = ""
    """Text that is read before each positive and negative, such as "passage: "."""

    @property
    def files(self) -> PairFiles:
        """As `TaskSettings.files`."""
        layout = Layout(self.anchor, self.positive, self.negatives, self.group)
        return PairFiles(layout, self.anchor_prompt, self.positive_prompt)

    @property
    def compares_sequences(self) -> bool:
        """As `TaskSettings.compares_sequences`."""
        return True

    def next_sentence(self, pairs: bool) -> bool:
        """As `TaskSettings.next_sentence`: there is no head."""
        return False

    def network(self, model: ModelConfig, entries: int, pairs: bool) -> NetworkConfig:
        """As `TaskSettings.network`: the encoder alone."""
        return model.resolve(entries, False, (), "vector")
