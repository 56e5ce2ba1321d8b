"""Small published folders of each family, as transformers itself writes them, with a tokenizer of ours, and as the
export writes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers

from bertwright.core.files import make_folder
from bertwright.export.folder import write_hf_folder
from bertwright.export.runtimes.runtime import Published
from bertwright.model.config import read_stock_config
from bertwright.model.family import ANSWERS, Head
from bertwright.model.model import Model, build_model
from bertwright.vocab.config import LONGEST_WORD, VocabConfig
from bertwright.vocab.entries import SPECIALS
from bertwright.vocab.run import run as make_vocab
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer

TEXTS = (
    "Az árvíztűrő tükörfúrógép Győrben készült.",
    "ÁRVÍZTŰRŐ TÜKÖRFÚRÓGÉP, Öt Szűk Űr!",
    "The river flows through the old town; it's 3.5 km (2 miles) long.",
    "A főváros Budapest, a folyó a Duna.",
    "An old mill stands by the river",
)
_NUMBERS = {
    "bert": {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
        "initializer_range": 0.3,
    },
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48, "initializer_range": 0.3},
    "modernbert": {
        "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 48,
        "initializer_range": 0.3, "initializer_cutoff_factor": 2.0, "local_attention": 16,
        "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3,
    },
}  # fmt: skip
FAMILIES = tuple(_NUMBERS)


def entries(lower_case: bool = False, strip_accents: bool = False, texts: Sequence[str] = TEXTS) -> list[str]:
    """The special entries, all characters of the texts, and some of their words."""
    words = build_tokenizer([*SPECIALS], lower_case, strip_accents)
    normal = [words.normalizer.normalize_str(text) for text in texts]
    characters = sorted({character for text in normal for character in text if not character.isspace()})
    pieces = [*characters, *(f"##{character}" for character in characters)]
    whole = [word for word, _ in words.pre_tokenizer.pre_tokenize_str(" ".join(normal)) if len(word) > 2]
    return [*SPECIALS, *pieces, *dict.fromkeys(whole[::2]), "##ben", "##dap"]


def publish(
    folder: Path, family: str, kind: str = "", labels: Sequence[str] = (), lower_case: bool = False,
    strip_accents: bool | None = None, texts: Sequence[str] = TEXTS, **more: Any,
) -> Published:  # fmt: skip
    """A random network of a family, with the head of `kind`, such as "ForMaskedLM", written by transformers.

    Accents are stripped with the case unless `strip_accents` says otherwise; the vocabulary has the letters of `texts`.
    """
    strip_accents = lower_case if strip_accents is None else strip_accents
    rows = entries(lower_case, strip_accents, texts)
    named = dict(enumerate(labels))
    config = transformers.AutoConfig.for_model(
        family, vocab_size=len(rows), max_position_embeddings=64, pad_token_id=0, id2label=named or None,
        label2id={name: i for i, name in named.items()} or None, **{**_NUMBERS[family], **more},
    )  # fmt: skip
    torch.manual_seed(0)
    network = getattr(transformers, f"AutoModel{kind}").from_config(config)
    with torch.no_grad():  # zeros and ones of a new network would hide parameters that are not read
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter += torch.randn(parameter.shape) / 5
    network.eval().save_pretrained(folder)
    build_tokenizer(rows, lower_case, strip_accents).save(str(folder / "tokenizer.json"))
    settings = {"do_lower_case": lower_case, "strip_accents": strip_accents}
    special = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIALS, strict=True))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        **{f"{name}_token": token for name, token in special.items()},
        **settings,
    )
    tokenizer.save_pretrained(folder)
    return Published(folder)


class Ours(NamedTuple):
    """A folder that the export wrote, and the network and tokenizer it is of."""

    published: Published
    model: Model
    tokenizer: Tokenizer


def publish_ours(
    folder: Path, family: str, head: Head | None = None, lower_case: bool = False, strip_accents: bool = False,
    longest_word: int = LONGEST_WORD,
) -> Ours:  # fmt: skip
    """As `publish`, written by the export: with a classifier if there is a `head`, else with all pre-training heads."""
    rows, beside = entries(lower_case, strip_accents), folder.with_name(f"{folder.name} beside")
    transformers.AutoConfig.for_model(
        family, vocab_size=len(rows), max_position_embeddings=64, **_NUMBERS[family]
    ).save_pretrained(beside)
    (beside / "vocab.txt").write_text("".join(f"{entry}\n" for entry in rows), encoding="utf-8")
    case = {"lower_case": lower_case, "strip_accents": strip_accents}
    settings = VocabConfig(file=beside / "vocab.txt", size=None, longest_word=longest_word, **case)
    vocab = make_vocab(settings, None, beside / "vocab")
    labels = {"labels": ANSWERS.get(head, ("ja", "nein", "talán")), "head": head} if head else {}
    pairs = {"next_sentence": head is None} if family == "bert" else {}
    torch.manual_seed(0)
    model = build_model(read_stock_config(beside / "config.json").model_copy(update={**labels, **pairs}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += torch.randn(parameter.shape) / 5
    write_hf_folder(make_folder(folder), model.eval(), vocab)
    return Ours(Published(folder), model, load_tokenizer(vocab))
