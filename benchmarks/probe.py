"""What a trained encoder knows of parts of speech: a linear classifier on its frozen states.

    python benchmarks/probe.py RUN TRAINING HELDOUT [--sentences 5000] [--json FILE]

RUN is a run folder with a finished training; TRAINING and HELDOUT are files of tagged sentences (benchmarks/tagged.py).
The state of a word is the last layer's at its first piece, without dropout, and what is learnt is a softmax over tags
on these states (benchmarks/softmax_fit.py): the encoder learns nothing.

Beside it, on the same words: the same network with weights as they are drawn, whose states tell words apart without
having learnt anything, and the commonest tag of each word in the training sentences (of all words, for one that is not
there). Accuracies are of all held-out words, and of those that no training sentence has. Words beyond what the network
reads are left out on all sides.
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
"""Sentences of a forward pass."""


@dataclass(frozen=True)
class Accuracy:
    """Shares of held-out words with the right tag, from 0 to 1."""

    overall: float
    unseen: float | None
    """Of the words that no training sentence has; None where there is none."""


@dataclass(frozen=True)
class Probe:
    """What was found."""

    words: int
    """Held out."""
    unseen: int
    trained: Accuracy
    random: Accuracy
    """The same network with weights as they are drawn."""
    majority: Accuracy
    """The commonest tag of each word."""


def probe_run(run: Path, training: Path, heldout: Path, sentences: int) -> Probe:
    """The probe of a run folder, learnt from at most so many sentences."""
    model, tokenizer = load_model(run / "train" / "model"), load_tokenizer(run / "vocab")
    return probe(model, tokenizer, spread(read_tagged(training), sentences), read_tagged(heldout))


def probe(model: PreTrainingModel, tokenizer: Tokenizer, training: list[Tagged], heldout: list[Tagged]) -> Probe:
    """The probe of a model and of its baselines; the model is left in the mode it was in."""
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
    """The tag of each held-out word by its state."""
    known = sorted({tag for sentence in training for _, tag in sentence})
    labels_N = torch.tensor([known.index(tag) for sentence in training for _, tag in sentence])
    own_NH, asked_NH = (states(model, tokenizer, part) for part in (training, heldout))
    return [known[guess] for guess in guesses(own_NH, labels_N, asked_NH, len(known)).tolist()]


def by_word(training: list[Tagged], heldout: list[Tagged]) -> list[str]:
    """The commonest training tag of each held-out word."""
    counts: dict[str, Counter[str]] = {}
    for sentence in training:
        for word, tag in sentence:
            counts.setdefault(word, Counter())[tag] += 1
    commonest = sum(counts.values(), Counter[str]()).most_common(1)[0][0]
    guess = {word: count.most_common(1)[0][0] for word, count in counts.items()}
    return [guess.get(word, commonest) for sentence in heldout for word, _ in sentence]


def accuracy(tags: Sequence[str], gold: Sequence[str], unseen: Tensor) -> Accuracy:
    """The share of tags that are right, of all and of the `unseen` ones, [number of words]."""
    right = torch.tensor([tag == true for tag, true in zip(tags, gold, strict=True)]).double()
    return Accuracy(right.mean().item(), right[unseen].mean().item() if unseen.any() else None)


@torch.no_grad()
def states(model: PreTrainingModel, tokenizer: Tokenizer, sentences: Sequence[Tagged]) -> Tensor:
    """[N, H] of the first piece of every word, one sentence after another."""
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
    """The ids of [CLS] sentence [SEP], and where each word's first piece stands."""
    ids, places = [tokenizer.ids("[CLS]")], list[int]()
    flat, lengths = tokenizer.encode_sentences([word for word, _ in sentence])
    entries = iter(flat.tolist())
    for length in lengths.tolist():
        places.append(len(ids))
        # A word of control characters alone has no piece.
        ids += [next(entries) for _ in range(length)] or [tokenizer.ids("[UNK]")]
    return [*ids, tokenizer.ids("[SEP]")], places


def readable(sentences: list[Tagged], tokenizer: Tokenizer, positions: int) -> list[Tagged]:
    """Each sentence up to the last word of which a network of so many positions reads all, with [CLS] and [SEP]."""
    read = []
    for sentence in sentences:
        ids, places = pieces(sentence, tokenizer)
        ends = [*places[1:], len(ids) - 1]
        read.append([tagged for tagged, end in zip(sentence, ends, strict=True) if end < positions])
    return [sentence for sentence in read if sentence]


def lines(found: Probe) -> list[str]:
    """The table."""
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
