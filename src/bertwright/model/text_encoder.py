"""A trained model for use: loaded from a run or from a folder of transformers, it turns texts into vectors, fills
masks, classifies texts, chooses answers and tags words.

Names carry shapes: N texts, P words, T tokens of all sequences together, H hidden, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import RecipeError
from bertwright.model.batch import PackedBatch, packed_sequences, to_device
from bertwright.model.classifier import Classifier
from bertwright.model.interop.stock import load_headless, load_stock, load_tensors
from bertwright.model.interop.vector_files import prompts_in
from bertwright.model.layer_states import layer_states
from bertwright.model.model import HeadlessModel, Model
from bertwright.model.pretrained_config import Pretrained, find_pretrained
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_network, network_from
from bertwright.model.vectors import mean_states
from bertwright.vocab.entries import CLS, MASK, SEP, UNK
from bertwright.vocab.load import read_vocabulary
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import Tokenizer, read_tokenizer
from bertwright.vocab.tokenizer import load_tokenizer as load_artifact

_TOKENIZER = "tokenizer.json"


def load_model(path: Path | str, device: torch.device | str = "cpu") -> Model | HeadlessModel:
    """The trained network of a run, in evaluation mode on `device`, in float32.

    `path` is a run folder whose training is finished, one of its folders `train` and `export`, or any folder in the
    format of transformers with a network of a family that bertwright has. The network is a torch module with its heads:
    a pre-trained one takes a `Batch` of tensors and returns the logits of the masked tokens and of the pairs, a
    classifier those of its classes, and one that was saved without heads the hidden states. Raises `RecipeError` if the
    folder has no network, `ArtifactError` if a file is damaged.
    """
    given = find_pretrained(path)
    model: Model | HeadlessModel
    if not given.stock:
        model = load_network(given.folder)
    elif given.task:
        if why := given.other_pooling:
            raise RecipeError(f"{why}.")
        config = given.network.model_copy(update={"labels": given.labels, "head": given.head})
        model = network_from(config, load_tensors(given))
    elif given.lacks_head:
        model = load_headless(given)
    else:
        model = load_stock(given.source)
    return model.to(device).eval()


def load_tokenizer(path: Path | str) -> Tokenizer:
    """The tokenizer of a run, or of any folder that `load_model` reads, or of the folder of a vocabulary artifact.

    `tokenizer.encode_texts(texts)` gives the ids of several texts, one after another, and the number of ids of each;
    `tokenizer.decode(ids)` gives text, `tokenizer.vocabulary` the entries by id.
    """
    path = Path(path)
    if (path / "recipe.toml").is_file():
        return load_artifact(path / "vocab")
    if (path / MANIFEST).is_file() and open_artifact(path).manifest["stage"] == "vocab":
        return load_artifact(path)
    given = find_pretrained(path)
    if (file := given.folder / _TOKENIZER).is_file():
        return read_tokenizer(file)
    settings = given.text_settings
    if settings is None:
        raise RecipeError(
            f"{path} has no {_TOKENIZER}, and nothing in it says whether its vocabulary is in lower case. Save its "
            "tokenizer with transformers (AutoTokenizer.save_pretrained)."
        )
    return Tokenizer(build_tokenizer(read_vocabulary(given.entries_file), **settings._asdict()))


class Encoder:
    """A trained model with its tokenizer, for texts: `encode` gives vectors, `fill_mask` the most probable words for a
    mask, `classify` the classes of a classifier, `choose` the answers to questions, and `tag` the tags of words.

    `path` and `device` are those of `load_model`. The attributes `model` and `tokenizer` are what `load_model` and
    `load_tokenizer` return.
    """

    def __init__(self, path: Path | str, device: torch.device | str = "cpu") -> None:
        """Load the model and the tokenizer of `path`, as `load_model` and `load_tokenizer`."""
        self.model = load_model(path, device)
        self.tokenizer = load_tokenizer(path)
        self._path: Path | str | None = path
        self.device = torch.device(device)

    @classmethod
    def of(cls, model: Model | HeadlessModel, tokenizer: Tokenizer, device: torch.device | str = "cpu") -> Encoder:
        """An encoder of a model that is already loaded; it is moved to `device`, and no longer trains."""
        encoder = cls.__new__(cls)
        encoder.model, encoder.tokenizer, encoder.device = model.to(device).eval(), tokenizer, torch.device(device)
        encoder._path = None
        return encoder

    @cached_property
    def prompts(self) -> Mapping[str, str]:
        """What a model of vectors was trained to read before a "query" and before a "document", if anything; `encode`
        does not add it."""
        return _prompts_of(find_pretrained(self._path)) if self._path is not None else {}

    def encode(self, texts: Sequence[str], batch: int = 32) -> NDArray[np.float32]:
        """The vector of each text [N, H]: the mean of its tokens' last hidden states, [CLS] and [SEP] included; divided
        by its length if the model was trained for vectors. Those of a model that was only pre-trained are all alike:
        subtract their mean before cosines are compared, or train vectors (`bertwright embed`).

        A text of more tokens than the model has positions is cut at its end. `batch` texts are computed at a time.
        """
        return self._vectors(len(texts), self.batches(texts, batch))

    def encode_ids(self, texts: Sequence[Sequence[int]], batch: int = 32) -> NDArray[np.float32]:
        """As `encode` [N, H], of texts given as the ids of their tokens, without [CLS] and [SEP]."""
        cls, sep = map(self.tokenizer.ids, (CLS, SEP))
        room = self.model.config.max_position_embeddings - 2
        sequences = [([cls, *ids[:room], sep], list[int]()) for ids in texts]
        return self._vectors(len(texts), self._packed(sequences, batch))

    def _vectors(self, texts: int, batches: Iterator[tuple[list[int], PackedBatch]]) -> NDArray[np.float32]:
        vectors = np.zeros((texts, self.model.config.hidden_size), np.float32)
        for places, packed in batches:
            with torch.inference_mode():
                hidden_TH = self.model.encoder(packed)
                found_NH = mean_states(hidden_TH, packed.cu_seqlens)
                if self.model.config.gives_vectors:
                    found_NH = normalize(found_NH, dim=-1)
            vectors[places] = found_NH.float().cpu().numpy()
        return vectors

    def fill_mask(self, text: str, top: int = 5) -> list[tuple[str, float]]:
        """The `top` most probable entries for the one `[MASK]` in `text`, each with its probability, best first.

        Raises `RecipeError` if the text has none or several, or the model is a classifier.
        """
        (found,) = self.fill_masks([text], top)
        if (masks := len(found)) != 1:
            raise RecipeError(f"{text!r} has {masks} [MASK] in the tokens that the model reads. Write exactly one.")
        return found[0]

    def fill_masks(self, texts: Sequence[str], top: int = 5, batch: int = 32) -> list[list[list[tuple[str, float]]]]:
        """As `fill_mask`, for each `[MASK]` of each text that the model reads, in order: a text of more tokens than it
        has positions is cut at its end."""
        found = [list[list[tuple[str, float]]]() for _ in texts]
        for places, of_text_P, p_PV in self.mask_probabilities(texts, batch):
            best = p_PV.topk(min(top, p_PV.shape[1]))
            rows = zip(of_text_P, best.indices.tolist(), best.values.tolist(), strict=True)
            for number, ids, shares in rows:
                words = [self.tokenizer.vocabulary[i] for i in ids]
                found[places[number]].append(list(zip(words, shares, strict=True)))
        return found

    def mask_probabilities(
        self, texts: Sequence[str], batch: int = 32
    ) -> Iterator[tuple[list[int], list[int], Tensor]]:
        """Yield the indices of at most `batch` texts, for each of their P `[MASK]`s which of these texts it is in, and
        the probabilities [P, V] of the entries there. Raises `RecipeError` if the model is a classifier."""
        if not isinstance(self.model, PreTrainingModel):
            raise RecipeError("this model has no head that fills masks. Load a pre-trained one.")
        for places, packed in self.batches(texts, batch):
            with torch.inference_mode():
                mlm_PV, _ = self.model(packed)
                # Rows that only pad the embedding have no entry.
                p_PV = mlm_PV[:, : len(self.tokenizer.vocabulary)].float().softmax(-1)
            of_text_P = torch.searchsorted(packed.cu_seqlens[1:], packed.prediction_positions, right=True)
            yield places, of_text_P.tolist(), p_PV

    def classify(self, texts: Sequence[str | tuple[str, str]], batch: int = 32) -> list[dict[str, float]]:
        """The probability of each class of a classifier, for each text or pair of texts; of a regression the predicted
        number. Of a classifier of several labels at once, the probabilities are independent of each other.

        What has more tokens than the model has positions is cut as in training: a pair at the end of its longer text.
        """
        if not isinstance(self.model, Classifier) or self.model.config.head not in ("sequence", "several"):
            raise RecipeError("this model has no classes of texts. Load a classifier of texts.")
        labels, found = self.model.config.labels, [dict[str, float]() for _ in texts]
        for places, packed in self.batches(texts, batch):
            with torch.inference_mode():
                logits_NC: Tensor = self.model(packed).float()
            if self.model.config.head == "several":
                values = logits_NC.sigmoid()
            else:
                values = logits_NC.softmax(-1) if len(labels) > 1 else logits_NC
            for place, row in zip(places, values.tolist(), strict=True):
                found[place] = dict(zip(labels, row, strict=True))
        return found

    def choose(self, questions: Sequence[tuple[str, Sequence[str]]], batch: int = 32) -> list[list[float]]:
        """The probability of each choice of each question, given as a text and the choices that may follow it.

        `batch` choices are computed at a time. What has more tokens than the model has positions is cut as in training.
        """
        if not isinstance(self.model, Classifier) or self.model.config.head != "choice":
            raise RecipeError("this model does not choose answers. Load one that was trained to (finetune choice).")
        if any(isinstance(choices, str) for _, choices in questions):
            raise RecipeError("the choices of a question are a text; give a list of texts for each question.")
        pairs = [(text, choice) for text, choices in questions for choice in choices]
        scores = torch.zeros(len(pairs))
        for places, packed in self.batches(pairs, batch):
            with torch.inference_mode():
                scores[places] = self.model(packed)[:, 0].float().cpu()
        counts = [len(choices) for _, choices in questions]
        return [each.softmax(-1).tolist() for each in torch.split(scores, counts)]

    def tag(self, sentences: Sequence[Sequence[str]], batch: int = 32) -> list[list[tuple[str, float]]]:
        """The most probable tag of each word of each sentence, with its probability. Sentences are lists of words.

        A sentence of more tokens than the model has positions is divided between words, so that each has a tag.
        """
        if not isinstance(self.model, Classifier) or self.model.config.head != "token":
            raise RecipeError(
                "this model does not tag words. Load one that was trained to (finetune ner, finetune pos)."
            )
        labels, parts = self.model.config.labels, list(self._parts(sentences))
        found: list[list[tuple[str, float]]] = [[] for _ in parts]
        for places, packed in self._packed([(part.ids, []) for part in parts], batch):
            starts = packed.cu_seqlens.tolist()
            words = [start + word for start, i in zip(starts, places, strict=False) for word in parts[i].words]
            positions_P = torch.tensor(words, device=self.device)
            with torch.inference_mode():
                logits_PC: Tensor = self.model(replace(packed, prediction_positions=positions_P)).float()
            best = logits_PC.softmax(-1).max(-1)
            tags = iter([(labels[i], p) for p, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)])
            for i in places:
                found[i] = list(islice(tags, len(parts[i].words)))
        tagged: list[list[tuple[str, float]]] = [[] for _ in sentences]
        for part, tags_of_part in zip(parts, found, strict=True):
            tagged[part.sentence] += tags_of_part
        return tagged

    def word_states(self, sentences: Sequence[Sequence[str]], batch: int = 32) -> NDArray[np.float32]:
        """The hidden states [L + 1, P, H] of all words of the sentences, in order: of the embeddings, then after each
        of the L layers. Sentences are lists of words, divided as by `tag`.

        A word has the state of its last piece, which has read the others: it tells more of inflected words than the
        first (Ács et al. 2021).
        """
        config, parts = self.model.config, list(self._parts(sentences))
        layers = range(config.num_hidden_layers + 1)
        ends = np.cumsum([len(part.words) for part in parts])
        states = np.zeros((len(layers), int(ends[-1]) if parts else 0, config.hidden_size), np.float32)
        for places, packed in self._packed([(part.ids, []) for part in parts], batch):
            # The last piece of a word stands before the first of the next, or before [SEP].
            last = [np.array([*parts[i].words[1:], len(parts[i].ids) - 1]) - 1 for i in places]
            words = np.concatenate([np.arange(ends[i] - len(parts[i].words), ends[i]) for i in places])
            starts = packed.cu_seqlens.tolist()
            pieces = np.concatenate([start + each for start, each in zip(starts, last, strict=False)])
            read_P = torch.from_numpy(pieces).to(self.device)
            chosen = replace(packed, prediction_positions=read_P)
            with torch.inference_mode(), layer_states(self.model, chosen, layers) as found:
                self.model.encoder(chosen, read_P)
            states[:, words] = torch.stack([found[layer] for layer in layers]).float().cpu().numpy()
        return states

    def _parts(self, sentences: Sequence[Sequence[str]]) -> Iterator[_Part]:
        """The sentences, divided between words where they are too long for the model."""
        if any(isinstance(sentence, str) for sentence in sentences):
            raise RecipeError("a sentence is a text; give a list of words for each sentence.")
        flat, lengths = self.tokenizer.encode_texts([word for sentence in sentences for word in sentence])
        pieces, ends = flat.tolist(), iter(np.cumsum(lengths).tolist())
        cls, sep, unknown = map(self.tokenizer.ids, (CLS, SEP, UNK))
        room, begin = self.model.config.max_position_embeddings - 1, 0
        for number, sentence in enumerate(sentences):
            ids, words = [cls], list[int]()
            for end in islice(ends, len(sentence)):
                # A word without pieces, such as a soft hyphen, is [UNK], as in training; one beyond all room is cut.
                own, begin = (pieces[begin:end] or [unknown])[: room - 1], end
                if len(ids) + len(own) > room:
                    yield _Part(number, [*ids, sep], words)
                    ids, words = [cls], []
                words.append(len(ids))
                ids += own
            if words:
                yield _Part(number, [*ids, sep], words)

    def batches(
        self, texts: Sequence[str | tuple[str, str]], batch: int = 32
    ) -> Iterator[tuple[list[int], PackedBatch]]:
        """Yield the indices of at most `batch` texts, or pairs, of similar length, and these as the model reads them.

        What has more tokens than the model has positions is cut, a pair at the end of its longer text.
        """
        if isinstance(texts, str):
            raise RecipeError("texts is a single text; give a list of texts.")
        pairs = [text if isinstance(text, tuple) else (text,) for text in texts]
        flat, lengths = self.tokenizer.encode_texts([part for pair in pairs for part in pair])
        pieces, ends, begin = flat.tolist(), iter(np.cumsum(lengths).tolist()), 0
        cls, sep = map(self.tokenizer.ids, (CLS, SEP))
        sequences: list[tuple[list[int], list[int]]] = []
        for pair in pairs:
            ids = list[list[int]]()
            for end in islice(ends, len(pair)):
                ids.append(pieces[begin:end])
                begin = end
            room = self.model.config.max_position_embeddings - 2
            if len(ids) == 1:
                sequences.append(([cls, *ids[0][:room], sep], []))
            else:
                first, second = _cut(ids[0], ids[1], room - 1)
                sequences.append(([cls, *first, sep], [*second, sep]))
        yield from self._packed(sequences, batch)

    def _packed(
        self, sequences: Sequence[tuple[list[int], list[int]]], batch: int
    ) -> Iterator[tuple[list[int], PackedBatch]]:
        """The indices of sequences of similar length, and these as a batch; each is given as its two segments."""
        order = np.argsort([len(a) + len(b) for a, b in sequences], kind="stable").tolist()
        mask = self.tokenizer.ids(MASK)
        for first in range(0, len(order), batch):
            places = order[first : first + batch]
            yield places, to_device(packed_sequences([sequences[i] for i in places], mask), self.device)


class _Part(NamedTuple):
    """A sentence, or a part of one."""

    sentence: int
    ids: list[int]
    """[CLS] pieces [SEP]."""
    words: list[int]
    """The index of each word's first piece."""


def _prompts_of(given: Pretrained) -> Mapping[str, str]:
    if given.artifact is None or given.stock:
        return prompts_in(given.folder)
    # A training has no files for other programs, but its recipe.
    objective = given.artifact.manifest["config"].get("train", {}).get("objective", {})
    keys = {"query": "anchor_prompt", "document": "positive_prompt"}
    return {name: str(objective[key]) for name, key in keys.items() if objective.get(key)}


def _cut(first: list[int], second: list[int], room: int) -> tuple[list[int], list[int]]:
    """Both texts, the longer one cut until both fit, as `LabelledExamples` cuts them."""
    shorter, longer = sorted((len(first), len(second)))
    half = min(shorter, room // 2)
    rest = min(longer, room - half)
    return (first[:rest], second[:half]) if len(first) > len(second) else (first[:half], second[:rest])
