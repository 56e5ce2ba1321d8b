"""Regression 2: a vocabulary with more entries than the embedding has rows.

sent2wordpiece (spyysalo/sent2wordpiece, used by the Hungarian recipe) turns a SentencePiece vocabulary into WordPiece:
it drops the three control symbols and the lone word-boundary mark, and adds BERT's five special entries and a hundred
[unusedN]: 101 more than SentencePiece was asked for. The recipe asks for 32,000, so vocab.txt has 32,101 entries, while
its bert_config.json says `vocab_size` 32000. The last 101 pieces index beyond the embedding, and nothing notices before
the first text that contains one.

Here the embedding of a named size has as many rows as the vocabulary has entries, and a configuration file with fewer
rows is refused when the recipe is read, with both numbers. There is no switch back.
"""

import json
from pathlib import Path

import pytest
import torch
from tests.rows import each_row
from torch.nn.functional import embedding

from bertwright.core.errors import RecipeError
from bertwright.model.bert.config import BertModelConfig
from bertwright.recipe import Recipe
from bertwright.vocab.load import read_vocabulary

# bert_config.json @8cddce5
HUNGARIAN = {
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 1024,
    "initializer_range": 0.02, "intermediate_size": 4096, "max_position_embeddings": 512,
    "num_attention_heads": 16, "num_hidden_layers": 24, "type_vocab_size": 2, "vocab_size": 32000,
}  # fmt: skip
RECIPE = """
[corpus]
source = "sample"
language = "hu"
[vocab]
file = "{folder}/vocab.txt"
[model]
config = "{folder}/bert_config.json"
[[train.phases]]
length = 128
batch = 8
learning_rate = 1e-4
steps = 10
"""


def sentencepiece(size: int) -> list[str]:
    """The shape of a SentencePiece vocabulary: three control symbols, the boundary mark, pieces."""
    boundary = "\u2581"
    return ["<unk>", "<s>", "</s>", boundary, *(f"{boundary * (i % 2)}p{i}" for i in range(size - 4))]


def sent2wordpiece(pieces: list[str], unused: int = 100) -> list[str]:
    words = [piece for piece in pieces if piece not in ("<unk>", "<s>", "</s>", "\u2581")]
    converted = [word[1:] if word.startswith("\u2581") else f"##{word}" for word in words]
    return ["[PAD]", *(f"[unused{i}]" for i in range(unused)), "[UNK]", "[CLS]", "[SEP]", "[MASK]", *converted]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vocab.txt").write_text("\n".join(sent2wordpiece(sentencepiece(32_000))) + "\n")
    (tmp_path / "bert_config.json").write_text(json.dumps(HUNGARIAN))
    (tmp_path / "recipe.toml").write_text(RECIPE.format(folder=tmp_path))
    return tmp_path


@each_row("size", [20_000, 32_000])
def test_the_original_conversion_adds_101_entries(size: int) -> None:
    assert len(sent2wordpiece(sentencepiece(size))) == size + 101


def test_the_original_embedding_fails_at_the_first_of_them() -> None:
    entries, rows = sent2wordpiece(sentencepiece(32_000)), torch.zeros(32_000, 1)
    last_good, first_bad = 31_999, 32_000
    assert entries[first_bad].removeprefix("##").startswith("p")
    embedding(torch.tensor([last_good]), rows)
    with pytest.raises(IndexError):
        embedding(torch.tensor([first_bad]), rows)


def test_ours_stops_when_the_recipe_is_read(folder: Path) -> None:
    with pytest.raises(RecipeError, match=r"bert_config\.json.*32,?000.*32,?101") as caught:
        Recipe.load(folder / "recipe.toml")
    assert str(caught.value).startswith(f"{folder / 'recipe.toml'}:"), "file and line come first"


def test_ours_stops_again_where_the_network_is_built(folder: Path) -> None:
    entries = len(read_vocabulary(folder / "vocab.txt"))
    with pytest.raises(RecipeError, match=r"32,?000.*32,?101"):
        BertModelConfig(config=folder / "bert_config.json").resolve(entries)


def test_the_mended_configuration_passes(folder: Path) -> None:
    mended = HUNGARIAN | {"vocab_size": 32_101}
    (folder / "bert_config.json").write_text(json.dumps(mended))
    recipe = Recipe.load(folder / "recipe.toml")
    assert recipe.model.resolve(32_101).vocab_size == 32_101


def test_a_named_size_follows_the_vocabulary() -> None:
    assert BertModelConfig(size="mini").resolve(32_101).vocab_size == 32_101
    assert BertModelConfig(size="mini", pad_vocab_to_multiple_of=64).resolve(32_101).vocab_size == 32_128
