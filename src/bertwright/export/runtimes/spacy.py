"""spaCy: a pipeline that tags words and finds entities, opened by `spacy.load` with no code of this project.

Its components are spaCy's own and those of spacy-curated-transformers: a transformer, a tagger whose last layer is the
classifier of the model, and an attribute ruler that turns tags into entities or parts of speech.

Names carry shapes: T tokens, H hidden, C classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor

from bertwright.core.errors import DataError
from bertwright.export.runtimes.runtime import Outputs, Published, Reader, Runtime
from bertwright.export.runtimes.spacy_words import explain, piece_ids, set_pieces
from bertwright.model.classifier import Classifier
from bertwright.model.text_encoder import load_model
from bertwright.tasks.tagging.schemes import OUTSIDE, split_tag
from bertwright.vocab.entries import entries_file, entries_of, text_settings

if TYPE_CHECKING:
    from spacy.language import Language

_WORD, _SPACE = {"IS_SPACE": False}, {"IS_SPACE": True}
_INSIDE, _OUTSIDE, _BEGIN = 1, 2, 3
"""spaCy's numbers of ENT_IOB."""
_NAMES = (
    ("embeddings.token.", "embeddings.word_embeddings."),
    ("embeddings.segment.", "embeddings.token_type_embeddings."),
    ("embeddings.position.", "embeddings.position_embeddings."),
    ("embeddings.norm.", "embeddings.layer_norm."),
    (".attention.norm.", ".attn_output_layernorm."),
    (".feed_forward.norm.", ".ffn_output_layernorm."),
    (".attention.output.", ".mha.output."),
    (".feed_forward.inner.", ".ffn.intermediate."),
    (".feed_forward.output.", ".ffn.output."),
)
"""Parts of the names of tensors, here and in curated-transformers."""
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


class Spacy(Runtime):
    """See `Runtime`."""

    name = package = folder = reads = "spacy"
    title = "spaCy"
    needs = ("spacy-curated-transformers",)
    install = "pip install 'bertwright[spacy]'"
    file = "config.cfg"

    def refusal(self, model: Published) -> str:
        """As `Runtime.refusal`."""
        if model.head != "token":
            return "it runs taggers of words, which this model is not"
        if model.family not in ("bert", "distilbert"):
            return f"spacy-curated-transformers has no networks of the family {model.family}"
        try:
            entries_of(entries_file(model.folder) or model.folder)
        except DataError:
            return "its vocabulary is not one of BERT's WordPiece, which spaCy reads for this family"
        if text_settings(model.folder) is None:
            return "its tokenizer does more to texts than lower-casing and stripping of accents"
        return ""

    def write(self, model: Published, out: Path) -> None:
        """As `Runtime.write`; reads the language of the texts from the metadata of the folder's card."""
        network = load_model(model.folder)
        assert isinstance(network, Classifier)
        nlp = _blank(_language(model.folder))
        _add_transformer(nlp, model, network)
        _add_tagger(nlp, network)
        ruler: Any = nlp.add_pipe("attribute_ruler")
        ruler.add_patterns(list(_rules(network.config.labels)))
        nlp.to_disk(out)

    def explain(self, model: Published, text: str) -> str:
        """As `Runtime.explain`."""
        return explain(model, text)

    @contextmanager
    def open(self, model: Published, out: Path, threads: int) -> Iterator[Reader]:
        """As `Runtime.open`."""
        import spacy

        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            yield _Pipeline(spacy.load(out))
        finally:
            torch.set_num_threads(before)


class _Pipeline:
    """See `Reader`."""

    def __init__(self, nlp: Language) -> None:
        transformer, tagger = nlp.get_pipe("transformer"), nlp.get_pipe("tagger")
        self.vocab = nlp.vocab
        self.pieces = transformer.model.get_ref("piece_encoder")
        self.network = transformer.model.get_ref("transformer")
        self.classifier = tagger.model.get_ref("softmax")
        # From the network itself: the longest text that it reads in one piece.
        self.positions = self.network.shims[0]._model.curated_encoder.max_seq_len

    def ids(self, text: str) -> list[int]:
        """As `Reader.ids`; words are what stands between spaces, as in the lines that `predict` answers."""
        ids = piece_ids(self.pieces, self.vocab, text.split())
        return [*ids[:-1][: self.positions - 1], ids[-1]]

    def run(self, text: str) -> Outputs:
        """As `Reader.run`: "logits" [T, C], of every piece, where the tagger has those of first pieces."""
        (layers,) = self.network.predict([np.array(self.ids(text), np.int32)]).all_outputs
        hidden_TH = layers[-1]
        none_TH = np.zeros_like(hidden_TH)
        return {"logits": self.classifier.predict(np.concatenate([none_TH, hidden_TH, none_TH], 1))}


def _blank(language: str) -> Language:
    """An empty pipeline with spaCy's rules for the words of a language, or for any if it has none that need nothing
    else installed."""
    import spacy

    try:
        return spacy.blank(language)
    except ImportError:
        return spacy.blank("xx")


def _language(folder: Path) -> str:
    """The language in the metadata of the folder's card; "xx", spaCy's word for any, if it names none or several."""
    card = folder / "README.md"
    found = _FRONT_MATTER.match(card.read_text(encoding="utf-8")) if card.is_file() else None
    metadata = yaml.safe_load(found[1]) if found else None
    named = metadata.get("language") if isinstance(metadata, dict) else None
    languages = named if isinstance(named, list) else [named]
    return languages[0] if len(languages) == 1 and isinstance(languages[0], str) else "xx"


def _add_transformer(nlp: Language, model: Published, network: Classifier) -> None:
    """Add the encoder of `network`, which reads texts of all its positions in one piece."""
    config = network.config
    positions = config.max_position_embeddings
    architecture = {
        "@architectures": "spacy-curated-transformers.BertTransformer.v1",
        "vocab_size": config.vocab_size,
        "hidden_width": config.hidden_size,
        "intermediate_width": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "hidden_act": "gelu",
        "layer_norm_eps": config.layer_norm_eps,
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob,
        "hidden_dropout_prob": config.hidden_dropout_prob,
        "max_position_embeddings": positions,
        "model_max_length": positions,
        "type_vocab_size": max(1, config.segments),
        "padding_idx": int(model.config.get("pad_token_id") or 0),
        # Spans that overlap would change texts that fit: their last pieces would be read again, without the rest.
        "with_spans": {
            "@architectures": "spacy-curated-transformers.WithStridedSpans.v1",
            "window": positions,
            "stride": positions,
        },
        "piece_encoder": {"@architectures": "spacy-curated-transformers.BertWordpieceEncoder.v1"},
    }
    pipe: Any = nlp.add_pipe("curated_transformer", name="transformer", config={"model": architecture})
    set_pieces(pipe.model.get_ref("piece_encoder"), model.folder)
    pipe.model.get_ref("transformer").shims[0]._model.load_state_dict(_curated(network))


def _curated(network: Classifier) -> dict[str, Tensor]:
    """The tensors of the encoder, under the names of curated-transformers."""
    tensors: dict[str, Tensor] = {}
    for full, tensor in network.state_dict().items():
        family, _, name = full.partition(".")
        if family != network.config.family:
            continue  # of the classifier
        for ours, theirs in _NAMES:
            name = name.replace(ours, theirs)
        tensors[f"curated_encoder.{name}"] = tensor
    for name in [name for name in tensors if ".attention.query." in name]:
        parts = [tensors.pop(name.replace("query", part)) for part in ("query", "key", "value")]
        tensors[name.replace(".attention.query.", ".mha.input.")] = torch.cat(parts)
    # DistilBERT has no segments: a single one without effect.
    width = network.config.hidden_size
    tensors.setdefault("curated_encoder.embeddings.token_type_embeddings.weight", torch.zeros(1, width))
    return tensors


def _add_tagger(nlp: Language, network: Classifier) -> None:
    """Add the classifier, which reads the first piece of each word.

    spaCy's own pooling of first pieces ends with an error where a text has two spaces in a row, because such a word has
    no pieces. Here the pieces of a word are summed up with those before and those after them, each [H], and the sum of
    all pieces less that of all but the first is the first one. White space has zeros.
    """
    width, labels = network.config.hidden_size, network.config.labels
    neighbours = {"@layers": "expand_window.v1", "window_size": 1}
    pooling = {"@layers": "chain.v1", "*": {"neighbours": neighbours, "sum": {"@layers": "reduce_sum.v1"}}}
    listener = {
        "@architectures": "spacy-curated-transformers.LastTransformerLayerListener.v1",
        "width": 3 * width,
        "pooling": pooling,
        "upstream": "transformer",
    }
    model = {"@architectures": "spacy.Tagger.v2", "normalize": False, "tok2vec": listener}
    pipe: Any = nlp.add_pipe("tagger", config={"model": model})
    for label in labels:
        pipe.add_label(label)
    weight_CH, bias_C = _classifier(network)
    softmax = pipe.model.get_ref("softmax")
    softmax.set_dim("nO", len(labels))
    softmax.set_param("W", np.concatenate([np.zeros_like(weight_CH), weight_CH, -weight_CH], 1))
    softmax.set_param("b", bias_C)


def _classifier(network: Classifier) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    tensors = network.state_dict()
    weight, bias = (tensors[f"classification.classifier.{name}"].numpy() for name in ("weight", "bias"))
    return weight, bias


def _rules(labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The patterns by which tags become entities, or parts of speech; later ones overrule earlier ones."""
    from spacy.parts_of_speech import IDS

    parts = [split_tag(label) for label in labels]
    outside = {"TAG": "_SP", "POS": "SPACE"}  # spaCy's tags of white space, of which no tag is predicted
    if not all(parts) or {OUTSIDE} >= {part[0] for part in parts if part}:
        for label in labels:
            if label in IDS:
                yield {"patterns": [[{"TAG": label, **_WORD}]], "attrs": {"POS": label}}
        yield {"patterns": [[_SPACE]], "attrs": outside}
        return
    yield {"patterns": [[{"TAG": OUTSIDE}]], "attrs": {"ENT_IOB": _OUTSIDE}}
    yield {"patterns": [[_SPACE]], "attrs": {"ENT_IOB": _OUTSIDE, **outside}}
    marks = dict(zip(labels, [part or (OUTSIDE, "") for part in parts], strict=True))
    for kind in dict.fromkeys(kind for _, kind in marks.values() if kind):
        yield from _entity_rules(kind, {label: mark for label, (mark, own) in marks.items() if own == kind})


def _entity_rules(kind: str, marks: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The patterns of a type of entities, whose tags have `marks`, as `read_entities` reads them: a word goes on with
    the entity of the word before if that one may be followed and it may follow, otherwise it begins one."""

    def tagged(letters: str) -> dict[str, Any]:
        return {"TAG": {"IN": [label for label, mark in marks.items() if mark in letters]}, **_WORD}

    goes_on, follows = tagged("BI"), tagged("IE")
    yield {"patterns": [[tagged("BIES")]], "attrs": {"ENT_IOB": _BEGIN, "ENT_TYPE": kind}}
    yield {"patterns": [[goes_on, follows]], "attrs": {"ENT_IOB": _INSIDE}, "index": 1}
    for index in (1, 2):  # white space between two words of an entity is part of it
        inside = {"ENT_IOB": _INSIDE, "ENT_TYPE": kind}
        yield {"patterns": [[goes_on, _SPACE, follows]], "attrs": inside, "index": index}
