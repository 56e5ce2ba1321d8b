"""What a trained encoder knows about parts of speech: a linear classifier on its frozen states.

    python benchmarks/probe.py RUN TRAINING HELDOUT [--sentences 5000] [--json FILE]

RUN is a run folder with a finished training; TRAINING and HELDOUT are files of tagged sentences (benchmarks/tagged.py).
The state of a word is the last layer's output at its first piece, without dropout. A softmax over tags is fitted to
these states (benchmarks/softmax_fit.py); the encoder itself is not trained.

There are two baselines on the same words: the same network with randomly initialized weights, whose states tell words
apart without any training, and the most common tag of each word in the training sentences (the most common tag overall
for words that do not occur there). Accuracies are given for all held-out words, and for those in no training sentence.
Words beyond the network's maximum length are left out on all sides.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from bertwright.model.batch import packed_sequences
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_model
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer
from softmax_fit import guesses
from tagged import Tagged, read_tagged, spread

AT_ONCE = 64
"""Sentences per forward pass."""


@dataclass(frozen=True)
class Accuracy:
    """Shares of held-out words with the correct tag, from 0 to 1."""

    overall: float
    unseen: float | None
    """Of the words that occur in no training sentence; None if there are none."""


@dataclass(frozen=True)
class Probe:
    """The result of a probe."""

    words: int
    """Number of held-out words."""
    unseen: int
    trained: Accuracy
    random: Accuracy
    """The same network with randomly initialized weights."""
    majority: Accuracy
    """The most common tag of each word."""


def probe_run(run: Path, training: Path, heldout: Path, sentences: int) -> Probe:
    """Probe a run folder, learning from at most `sentences` sentences."""
    model, tokenizer = load_model(run / "train" / "model"), load_tokenizer(run / "vocab")
    return probe(model, tokenizer, spread(read_tagged(training), sentences), read_tagged(heldout))


def probe(model: PreTrainingModel, tokenizer: Tokenizer, training: list[Tagged], heldout: list[Tagged]) -> Probe:
    """Probe a model and its baselines; the model's training mode is restored."""
    most = model.config.max_position_embeddings
    training, heldout = (readable(part, tokenizer, most) for part in (training, heldout))
    if not training or not heldout:
        raise SystemExit("there is no tagged word to learn from, or none to ask: give files with sentences")
    seen = {word for sentence in training for word, _ in sentence}
    unseen = torch.tensor([word not in seen for sentence in heldout for word, _ in sentence])
    torch.manual_seed(1)
    drawn = PreTrainingModel(model.config)
    learnt = (guessed(network, tokenizer, training, heldout) for network in (model, drawn))
    gold = [tag for sentence in heldout for _, tag in sentence]
    accuracies = [accuracy(tags, gold, unseen) for tags in (*learnt, by_word(training, heldout))]
    return Probe(len(unseen), int(unseen.sum()), *accuracies)


def guessed(model: PreTrainingModel, tokenizer: Tokenizer, training: list[Tagged], heldout: list[Tagged]) -> list[str]:
    """The tag of each held-out word, predicted from its state."""
    known = sorted({tag for sentence in training for _, tag in sentence})
    labels_N = torch.tensor([known.index(tag) for sentence in training for _, tag in sentence])
    own_NH, asked_NH = (states(model, tokenizer, part) for part in (training, heldout))
    return [known[guess] for guess in guesses(own_NH, labels_N, asked_NH, len(known)).tolist()]


def by_word(training: list[Tagged], heldout: list[Tagged]) -> list[str]:
    """The most common training tag of each held-out word."""
    counts: dict[str, Counter[str]] = {}
    for sentence in training:
        for word, tag in sentence:
            counts.setdefault(word, Counter())[tag] += 1
    commonest = sum(counts.values(), Counter[str]()).most_common(1)[0][0]
    guess = {word: count.most_common(1)[0][0] for word, count in counts.items()}
    return [guess.get(word, commonest) for sentence in heldout for word, _ in sentence]


def accuracy(tags: Sequence[str], gold: Sequence[str], unseen: Tensor) -> Accuracy:
    """The share of correct tags, over all words and over those marked in `unseen`, [number of words]."""
    right = torch.tensor([tag == true for tag, true in zip(tags, gold, strict=True)]).double()
    return Accuracy(right.mean().item(), right[unseen].mean().item() if unseen.any() else None)


@torch.no_grad()
def states(model: PreTrainingModel, tokenizer: Tokenizer, sentences: Sequence[Tagged]) -> Tensor:
    """[N, H] states of the first piece of every word, one sentence after another."""
    was_training, found = model.training, list[Tensor]()
    model.eval()
    for start in range(0, len(sentences), AT_ONCE):
        cut = [pieces(sentence, tokenizer) for sentence in sentences[start : start + AT_ONCE]]
        batch = packed_sequences([(ids, ()) for ids, _ in cut], tokenizer.ids("[MASK]"))
        begins = batch.cu_seqlens.tolist()[:-1]
        first_N = [begin + place for begin, (_, places) in zip(begins, cut, strict=True) for place in places]
        found.append(model.encoder(batch, torch.tensor(first_N)))
    model.train(was_training)
    return torch.cat(found)


def pieces(sentence: Tagged, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The ids of [CLS] sentence [SEP], and the position of each word's first piece."""
    ids, places = [tokenizer.ids("[CLS]")], list[int]()
    flat, lengths = tokenizer.encode_sentences([word for word, _ in sentence])
    entries = iter(flat.tolist())
    for length in lengths.tolist():
        places.append(len(ids))
        # A word that consists only of control characters has no piece.
        ids += [next(entries) for _ in range(length)] or [tokenizer.ids("[UNK]")]
    return [*ids, tokenizer.ids("[SEP]")], places


def readable(sentences: list[Tagged], tokenizer: Tokenizer, positions: int) -> list[Tagged]:
    """Each sentence, cut after the last word that fits completely into `positions` with [CLS] and [SEP]."""
    read = []
    for sentence in sentences:
        ids, places = pieces(sentence, tokenizer)
        ends = [*places[1:], len(ids) - 1]
        read.append([tagged for tagged, end in zip(sentence, ends, strict=True) if end < positions])
    return [sentence for sentence in read if sentence]


def lines(found: Probe) -> list[str]:
    """The result as a Markdown table."""
    rows = [
        ("this network", found.trained),
        ("its weights as drawn", found.random),
        ("tag of the word", found.majority),
    ]
    head = f"| part of speech by | all {found.words:,} words | {found.unseen:,} unseen ones |"
    shown = ["-" if each.unseen is None else f"{each.unseen:.1%}" for _, each in rows]
    return [head, "|---|---|---|"] + [
        f"| {name} | {each.overall:.1%} | {unseen} |" for (name, each), unseen in zip(rows, shown, strict=True)
    ]


def main(*arguments: str) -> None:
    """Probe a run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, about in (("run", "a run folder"), ("training", "tagged sentences"), ("heldout", "others")):
        parser.add_argument(name, type=Path, help=about)
    parser.add_argument("--sentences", type=int, default=5000, help="most that are learnt from, evenly over the file")
    parser.add_argument("--json", type=Path, help="a file for the numbers")
    given = parser.parse_args(arguments)
    found = probe_run(given.run, given.training, given.heldout, given.sentences)
    print("\n".join(lines(found)))
    if given.json:
        given.json.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
