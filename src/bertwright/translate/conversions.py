"""How options whose value is not simply that of a key become keys: one function each, named by `Option.becomes`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from bertwright.core.errors import RecipeError
from bertwright.translate.command import PHASE, Command, Key

NETWORKS = {"distilbert": "distilbert", "bert": "bert"}
_DUMP = re.compile(r"(?:^|/)([a-z_]+)wiki[-.]|wikicorpus_([a-z]+)")


def nothing(command: Command, name: str) -> Iterator[Key]:
    """Has no key, though its table names one that the note is about."""
    yield from ()


def batch(command: Command, name: str) -> Iterator[Key]:
    """Sequences of a process and update as the global batch."""
    why = f"{command.source(name)}{_times(command.launch.ranks, 'processes')}"
    yield Key(f"{PHASE}batch", int(command.number(name)) * command.launch.ranks, why)


def _times(count: int, what: str) -> str:
    return f", x {count} {what}" if count > 1 else ""


def micro_batch(command: Command, name: str) -> Iterator[Key]:
    """Sequences of a process and update, over the forward passes that they are taken in."""
    batch, passes = int(command.number("train_batch_size")), int(command.number(name, 1))
    if passes < 1 or batch % passes:
        raise RecipeError(
            f"{command.source(name)}: train_batch_size {batch} is not divided by {passes}, and the original stops. "
            f"Give a divisor of {batch}."
        )
    yield Key(f"{PHASE}micro_batch", batch // passes, f"{batch} / {command.source(name)}")


def device_batch(command: Command, name: str) -> Iterator[Key]:
    """The Trainer's sequences of a forward pass, of which the batch has so many a device."""
    size, passes = int(command.number(_DEVICE)), int(command.number("gradient_accumulation_steps", 1))
    ranks = command.launch.ranks
    why = f"{command.source(_DEVICE)}{_times(passes, 'passes')}{_times(ranks, 'processes')}"
    yield Key(f"{PHASE}batch", size * passes * ranks, why)
    yield Key(f"{PHASE}micro_batch", size, command.source(_DEVICE))


_DEVICE = "per_device_train_batch_size"


def precision(command: Command, name: str) -> Iterator[Key]:
    """A switch of this name as `train.precision`; of fp16 with its first loss scale."""
    if not command[name]:
        return
    kind = "fp16" if name == "amp" else name
    scale = command.number("init_loss_scale") or command.number("loss_scale") or 2.0**16
    if kind == "fp16" and "init_loss_scale" in command.settings and scale != 2.0**16:
        yield Key("train.precision", {"kind": kind, "initial_scale": scale}, command.source(name, "init_loss_scale"))
    elif kind == "fp16" and command.number("loss_scale"):
        yield Key("train.precision", {"kind": kind, "initial_scale": scale}, command.source(name, "loss_scale"))
    else:
        yield Key("train.precision", kind, command.source(name))


def instructions(command: Command, name: str) -> Iterator[Key]:
    """oneDNN's bound on instruction sets."""
    most = {"AVX512_CORE_AMX": "amx", "AVX512_CORE_AMX_FP16": "amx", "AVX512_CORE_BF16": "avx512_bf16"}
    most |= {"AVX512_CORE": "avx512", "AVX2": "avx2"}
    value = str(command[name]).upper()
    if value not in most:
        raise RecipeError(f"{name}={command[name]}: give one of {', '.join(most)}.")
    yield Key("train.cpu_isa", most[value], command.source(name))


def log_every(command: Command, name: str) -> Iterator[Key]:
    """Forward passes between lines as updates."""
    if passes := command.number(name):
        updates = max(1, round(passes / max(1.0, command.number("gradient_accumulation_steps", 1))))
        yield Key("train.log_every", updates, f"{command.source(name)}, counted in forward passes there")


def steps_of_samples(command: Command, name: str) -> Iterator[Key]:
    """An interval in sequences as one in steps."""
    key = command.program.original(name)
    if key and command.number(name) > 0:
        batch = int(command.number("train_batch_size")) * command.launch.ranks
        yield Key(key.keys[0], max(1, round(command.number(name) / batch)), f"{command.source(name)} / {batch}")


def end_after(command: Command, name: str) -> Iterator[Key]:
    """Sequences after which training ends although its schedule is longer."""
    batch = int(command.number("train_batch_size")) * command.launch.ranks
    if (steps := int(command.number(name)) // batch) < int(command.number("max_steps")):
        yield Key(f"{PHASE}end_after", max(1, steps), f"{command.source(name)} / {batch}")


def warmup(command: Command, name: str) -> Iterator[Key]:
    """A share of the steps, or a number of them that stands before it."""
    if steps := int(command.number("warmup_steps")):
        yield Key(f"{PHASE}warmup", steps, command.source("warmup_steps"))
    else:
        yield Key(f"{PHASE}warmup", command.number("warmup_proportion"), command.source("warmup_proportion"))


def whole(command: Command, name: str) -> Iterator[Key]:
    """A number of steps, which may have been typed as 500.0."""
    if (key := command.program.original(name)) and command.number(name):
        yield Key(key.keys[0], int(command.number(name)), command.source(name))


def betas(command: Command, name: str) -> Iterator[Key]:
    """Two decay rates that are options of their own."""
    names = [option for option in command.settings if option.removeprefix("opt_lamb_") in _BETAS]
    values = [command.number(option) for option in sorted(names)]
    yield Key("optim.betas", values, command.source(*sorted(names)))


_BETAS = {"beta_1", "beta_2", "adam_beta1", "adam_beta2"}


def engine(command: Command, name: str) -> Iterator[Key]:
    """The optimizer's state in parts."""
    if command[name]:
        yield Key("train.engine", "zero", command.source(name))


def deepspeed(command: Command, name: str) -> Iterator[Key]:
    """DeepSpeed's settings: the stage of their file, where it can be read; else the one of the published file."""
    file = Path(str(command[name]))
    stage = 1 if file.name == "ds_config.json" else 0
    if file.is_file():
        try:
            stage = int(json.loads(file.read_text(encoding="utf-8")).get("zero_optimization", {}).get("stage", 0))
        except (ValueError, AttributeError, TypeError) as error:
            raise RecipeError(f"{command.source(name)}: the file is no DeepSpeed configuration: {error}.") from error
    if stage:
        kind = {1: "zero", 2: "fsdp", 3: "fsdp"}[stage]
        yield Key("train.engine", kind, f"{command.source(name)}, whose ZeRO stage is {stage}")


def vocabulary(command: Command, name: str) -> Iterator[Key]:
    """The published vocabulary of a model's name."""
    model, source = str(command[name]), command.source(name)
    cased = "cased" in model and "uncased" not in model
    kind = ("multilingual-cased" if "multilingual" in model else "cased") if cased else "uncased"
    why = f"{source}; bertwright vocab --download google-{kind}"
    yield Key("vocab.file", f"downloads/google-{kind}-vocab.txt", why)
    if not cased:
        yield Key("vocab.lower_case", True, source)
        yield Key("vocab.strip_accents", True, "it does both")


def network(command: Command, name: str) -> Iterator[Key]:
    """The architecture of a model's name, with its vocabulary."""
    found = re.match(r"(?:.*/)?(distilbert|bert)-(tiny|mini|small|medium|base|large)-", str(command[name]))
    if not found:
        raise RecipeError(
            f"{command.source(name)}: only names such as bert-base-uncased say what network it is. Give one of these, "
            "and set model.config to the model's config.json in the recipe."
        )
    if found[1] == "distilbert":
        yield Key("model.kind", "distilbert", command.source(name))
    yield Key("model.size", found[2], command.source(name))
    yield from vocabulary(command, name)


def start_from(command: Command, name: str) -> Iterator[Key]:
    """Weights to start from: a run's, or a folder of Hugging Face."""
    if (text := str(command[name])) == "None":
        return
    folder = Path(text).expanduser()
    near = [folder, folder / "train", folder.parent / "train"]
    if not (folder / "config.json").is_file():
        ours = next((place for place in near if (place / "manifest.json").is_file()), folder)
        yield Key("train.init_from", str(ours), command.source(name))
        return
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        layers = int(config["num_hidden_layers"])
    except (ValueError, KeyError, TypeError) as error:
        raise RecipeError(f"{folder / 'config.json'} does not say num_hidden_layers ({error!r}). Mend it.") from error
    yield Key("model.config", str(folder / "config.json"), command.source(name))
    yield Key("train.init_from", str(folder), command.source(name))
    yield Key("train.init_layers", list(range(1, layers + 1)), "all layers: it is a folder of Hugging Face")


def lower_case(command: Command, name: str) -> Iterator[Key]:
    """Case, and the accents that go with it there."""
    if command[name]:
        yield Key("vocab.lower_case", True, command.source(name))
        yield Key("vocab.strip_accents", True, "there accents go with case")


def whole_words(command: Command, name: str) -> Iterator[Key]:
    """Google's whole-word masking."""
    if command[name]:
        yield Key(f"{PHASE}masking.unit", "words", command.source(name))


def dump(command: Command, name: str) -> Iterator[Key]:
    """A dump or a file of text, and the language that its name tells."""
    path = str(command[name])
    yield Key("corpus.source", path, command.source(name))
    if found := _DUMP.search(path):
        yield Key("corpus.language", found[1] or found[2], "by the name of the dump")


def sentences(command: Command, name: str) -> Iterator[Key]:
    """A text with a sentence a line and blank lines between documents, or a folder of such texts."""
    path = str(command[name])
    yield Key("corpus.source", {"path": path, "lines": "sentences"}, command.source(name))


def dataset(command: Command, name: str) -> Iterator[Key]:
    """bertPrep's names of what it fetches."""
    if found := re.fullmatch(r"wikicorpus_(en|zh)", str(command[name])):
        source = f"downloads/{found[1]}wiki-*-pages-articles-multistream.xml.bz2"
        yield Key("corpus.source", source, f"{command.source(name)}; bertwright corpus --download {found[1]}")
        yield Key("corpus.language", found[1], command.source(name))


def splitter(command: Command, name: str) -> Iterator[Key]:
    """A program that splits sentences, with its options."""
    words = [
        "quntoken",
        *(word for setting in command.settings.values() if setting.said for word in setting.text.split()),
    ]
    yield Key("corpus.split.command", words, command.text)


def pieces(command: Command, name: str) -> Iterator[Key]:
    """SentencePiece's size, with what sent2wordpiece makes of it: 100 unused entries, 5 special for its 3, no ▁."""
    size = int(command.number(name))
    yield Key("vocab.size", size + 101, f"{command.source(name)}, and what sent2wordpiece adds")
    yield Key("vocab.unused", 100, "sent2wordpiece's default")


def trainer(command: Command, name: str) -> Iterator[Key]:
    """An option of SentencePiece, whose section has its name."""
    if key := command.program.original(name):
        yield Key("vocab.trainer.kind", "sentencepiece", "spmtrain.py")
        yield Key(key.keys[0], command[name], command.source(name))


def threshold(command: Command, name: str) -> Iterator[Key]:
    """A threshold of TurkuNLP's filter."""
    if key := command.program.original(name):
        yield Key(key.keys[0], command[name], command.source(name))


def languages(command: Command, name: str) -> Iterator[Key]:
    """The language that documents must be in."""
    yield Key("corpus.language", command[name], command.source(name))


def each_language(command: Command, name: str) -> Iterator[Key]:
    """The language that the filter identifies."""
    yield Key("corpus.filter.languages", [command[name]], command.source(name))


def global_batch(command: Command, name: str) -> Iterator[Key]:
    """A batch that is the global one there too."""
    yield Key(f"{PHASE}batch", command[name], f"{command.source(name)}, of all devices together")


def data(command: Command, name: str) -> Iterator[Key]:
    """Files of examples, of which a folder is named here."""
    path = str(command[name]).split(",")[0]
    folder = path.rpartition("/")[0] if "*" in path or path.endswith((".tfrecord", ".hdf5")) else path
    yield Key(f"{PHASE}data", folder or ".", command.source(name))


def length(command: Command, name: str) -> Iterator[Key]:
    """The length that data is prepared for; of an action that prepares none, nothing."""
    yield Key(f"{PHASE}length", command[name], command.source(name))
    yield Key(f"{PHASE}masking.static", True, "masks that stay, as in its files")
    yield Key(f"{PHASE}masking.random_tokens", "all", "special and unused entries too, as there")


def long(command: Command, name: str) -> Iterator[Key]:
    """Phase 2 of data that says its length by its folder alone."""
    if command[name]:
        yield Key(f"{PHASE}length", 512, f"{command.source(name)}: of the data, no option says it")


def compiled(command: Command, name: str) -> Iterator[Key]:
    """torch.compile."""
    if command[name]:
        yield Key("train.graph", "compiled", command.source(name))


def characters(command: Command, name: str) -> Iterator[Key]:
    """Whether the alphabet becomes entries."""
    yield Key("vocab.trainer.add_characters", bool(command[name]), command.source(name))


def glue(command: Command, name: str) -> Iterator[Key]:
    """The texts of a task of GLUE, as `datasets` saves them."""
    task = str(command[name]).removesuffix("-mm")
    columns = _GLUE.get(task, ("sentence1", "sentence2"))
    source = [{"path": f"glue/{task}/train", "text": column} for column in columns]
    yield Key("corpus.source", source, f"{command.source(name)}, saved with `datasets`")


_GLUE = {
    "cola": ("sentence",), "sst2": ("sentence",), "mnli": ("premise", "hypothesis"), "qnli": ("question", "sentence"),
    "qqp": ("question1", "question2"),
}  # fmt: skip
"""The columns of text of the tasks of GLUE that do not call them sentence1 and sentence2."""


def trainer_warmup(command: Command, name: str) -> Iterator[Key]:
    """The Trainer's: steps where they are given, else the share."""
    if steps := int(command.number("warmup_steps")):
        yield Key(f"{PHASE}warmup", steps, command.source("warmup_steps"))
    else:
        yield Key(f"{PHASE}warmup", command.number("warmup_ratio"), command.source("warmup_ratio", "warmup_steps"))


def no_templates(command: Command, name: str) -> Iterator[Key]:
    """Templates left as they are."""
    yield Key("corpus.wikitext.expand_templates", False, command.source(name))


def tensorboard(command: Command, name: str) -> Iterator[Key]:
    """The folder of TensorBoard's files."""
    yield Key("train.observers", [{"kind": "tensorboard", "folder": command[name]}], command.source(name))
