"""Contradictions between a recipe and what it names: folders of examples, and networks that training starts from or
learns from. `Recipe.check` runs these checks with all others if there is one."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from bertwright.contradictions.sections import Mistake
from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, BertwrightError, DataError
from bertwright.examples.config import PAIRS, PlanSet
from bertwright.examples.labelled.config import missing_glue
from bertwright.model.config import NetworkConfig, network_of, unsupported_heads
from bertwright.model.pretrained_config import NEW_ROWS, Pretrained, other_vocabulary, other_words, read_pretrained
from bertwright.model.transfer_config import no_moments, other_kinds, repeated_layers, transfer, wrong_tiles
from bertwright.optim.config import OptimConfig, other_moments
from bertwright.tasks.config import TaskConfig
from bertwright.tasks.distillation.config import DistillationConfig
from bertwright.tasks.distillation.teacher_fit import KEY, misfits
from bertwright.train.config import TrainConfig
from bertwright.train.settings.phase_config import PhaseConfig
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import entries_of


def wrong_folders(train: TrainConfig, plan: str, vocab: VocabConfig, unread: Container[str] = ()) -> Iterator[Mistake]:
    """Check that training reads finished folders of the right stage, task (`examples.plan`), length and vocabulary.
    Data of a phase whose key is in `unread` need not exist."""
    for i, phase in enumerate(train.phases):
        key = f"train.phases.{i}.data"
        if phase.data is None:
            continue
        if not phase.data.exists() and key not in unread:
            missing = f"{phase.data} does not exist; give an examples folder, or files of examples"
            yield key, missing_glue(phase.data) or missing
        elif (phase.data / "recipe.toml").is_file():
            # The likeliest mistake is to name the run instead of its examples.
            examples = phase.data / "examples"
            finished = "" if (examples / MANIFEST).is_file() else ", once it is finished"
            yield key, f"{phase.data} is a run folder; give its {examples}{finished}"
        elif not (phase.data / MANIFEST).is_file():
            if phase.document_range != (0.0, 1.0):
                text = (
                    f"{list(phase.document_range)} is a share of documents, but {phase.data} does not contain documents"
                )
                yield f"train.phases.{i}.document_range", f"{text}; leave it out"
        elif wrong := wrong_folder(phase.data, "examples") or _misfit(phase.data, phase, vocab):
            yield key, wrong
        elif phase.quarantine:
            text = (
                f"{phase.data} is an examples folder, and its files are already checked by their hashes; leave it out"
            )
            yield f"train.phases.{i}.quarantine", text
        # Only pairs have labels: the network has a next-sentence head for all phases or for none.
        elif (other := open_artifact(phase.data).manifest["config"]["examples"]["plan"]) != plan and {
            other,
            plan,
        } & set(PAIRS):
            yield key, f"{phase.data} was made with examples.plan={other}, but this recipe has {plan}; use the same"


def wrong_folder(path: Path, stage: str) -> str:
    """Return why `path` is not the finished folder of a stage; "" if it is."""
    try:
        made_by = open_artifact(path).manifest["stage"]
    except ArtifactError as error:
        return str(error)
    return "" if made_by == stage else f"{path} was made by the stage {made_by!r}; give a folder of {stage}"


def _misfit(examples: Path, phase: PhaseConfig, vocab: VocabConfig) -> str:
    """Return why an examples folder has no examples for the phase; "" if it has."""
    artifact, wanted = open_artifact(examples), PlanSet(length=phase.length, document_range=phase.document_range)
    plans = [Path(name).stem for name in artifact.names("plans/train/") if name.endswith(".json")]
    if wanted.name in plans:
        return _other_vocabulary(examples, vocab.file, vocab) if vocab.file else ""
    if artifact.names("labelled/"):
        return f"{examples} has labelled texts, but no examples for pre-training; give the examples of another run"
    if not plans:
        return (
            f"{examples} was made without a corpus, so it has only the examples of other files; give those files, or "
            "the examples folder of a run with a corpus"
        )
    return (
        f"{examples} has examples of {', '.join(plans)} (length-document_range), but this phase needs {wanted.name}; "
        "give it a length and a document_range that are there, or make that run with a phase like this one"
    )


def _other_vocabulary(examples: Path, file: Path, vocab: VocabConfig) -> str:
    """Return why the ids of an examples folder are not those of the given `vocab.file`; "" if they are."""
    from bertwright.vocab.entries import entries_of

    try:
        if open_artifact(examples).counts["vocabulary"] == vocab.hash_of(entries_of(file)):
            return ""
    except DataError:
        return ""  # reported with the size of the vocabulary
    theirs = examples.parent / "vocab" / "vocab.txt"
    return (
        f"{examples} was made with another vocabulary than {file} with lower_case and strip_accents as they are here; "
        f"set vocab.file={theirs if theirs.is_file() else 'its vocab.txt'} and the text settings it was made with"
    )


_START, _LAYERS = "train.init_from", "train.init_layers"


def wrong_start(
    train: TrainConfig, network: NetworkConfig, optim: OptimConfig, vocab: VocabConfig
) -> Iterator[Mistake]:
    """Yield a network to start from that is invalid, differs from the one of `[model]`, has another vocabulary than
    `vocab.file`, or has no moments for the optimizer; and layers of it that it does not have, or that do not fit."""
    if train.init_from is None:
        return
    try:
        if (checkpoint := train.init_checkpoint()) is not None:
            if train.init_embeddings != "random":
                yield "train.init_embeddings", f"{train.init_embeddings} {no_moments(train.init_from)}"
                return
            wrong = _wrong_checkpoint(train.init_from, checkpoint, network, optim, vocab)
            yield from ((_START, text) for text in wrong)
            return
        given = read_pretrained(train.init_from)
        if network.predicts_tokens and given.other_task:
            yield _START, given.other_task
            return
        if not train.phases[0].restart_bias_correction:
            text = f"false needs optimizer moments to continue from, but train.init_from {given.path} has only weights"
            yield "train.phases.0.restart_bias_correction", f"{text}; give one of its checkpoints, or leave the key out"
        other_entries = train.init_embeddings != "random"
        difference = other_vocabulary(given, vocab) if vocab.file and not other_entries else ""
        if difference:
            yield _START, f"{given.path} {other_words(given, f'vocab.file {vocab.file}', difference, NEW_ROWS)}"
        layers: Sequence[int] = train.init_layers
        if train.init_tiled:
            misfit = wrong_tiles(network, given.network, layers)
            found = [("train.init_tiled", f"{given.path}: {misfit}")] if misfit else []
            layers = layers or repeated_layers(network, given.network)
        else:
            found = list(_wrong_network(given.path, given.network, network, given.folder / "config.json")) * (
                not layers
            )
        if train.init_layers and not found:
            found = list(_wrong_layers(train, network, given))
        yield from found
        # A vocabulary that is not given is compared where it is known: rows say nothing about entries.
        known = vocab.file and not difference and not other_entries
        rows = {} if known else {"vocab_size": given.network.vocab_size}
        like = network.model_copy(update=rows)
        # Another vocabulary may be of a kind whose entries cannot be listed.
        entries = None if other_entries else len(given.entries)
        if not found and (faults := transfer(like, given, entries, layers, tiled=train.init_tiled).faults):
            more = f" ({len(faults)} tensors differ)" if len(faults) > 1 else ""
            text = f"{given.path} is another network: {faults[0]}{more}"
            where = f" (model.config={given.config_file})" if given.config_file else ""
            yield _START, f"{text}; set [model] to that network{where}"
    except BertwrightError as error:
        yield _START, str(error)


def _wrong_network(path: Path, other: NetworkConfig, network: NetworkConfig, file: Path | None) -> Iterator[Mistake]:
    shape = f"model.config={file}" if file else "model.config to its config.json"
    if other.family != network.family:
        text = f"{path} is a {other.title} but [model] is a {network.title}; set model.kind={other.family}"
        yield _START, f"{text} and {shape}" if file else text
        return
    # The shapes of the weights do not reveal every difference: they would load, but compute another function.
    for name in (each for each in type(network).model_fields if each not in network.may_differ):
        theirs, own = getattr(other, name), getattr(network, name)
        if theirs != own:
            text = f"{name} is {theirs} in {path} but {own} in [model]"
            yield _START, f"{text}; set the size of that network in the recipe, or set {shape}"
            # One is enough: a network of another size differs in most of them.
            return


def _wrong_layers(train: TrainConfig, network: NetworkConfig, given: Pretrained) -> Iterator[Mistake]:
    """Yield `init_layers` that the other network does not have, or that compute another function here."""
    deeper, layers, where = given.network, train.init_layers, f"train.init_from ({given.path})"
    own, depth = network.num_hidden_layers, deeper.num_hidden_layers
    if len(layers) != own or max(layers) > depth:
        text = f"{list(layers)} must be {own} numbers from 1 to {depth}, one for each layer of [model]"
        yield _LAYERS, f"{text}, each a layer of {where}"
        return
    if deeper.hidden_size != network.hidden_size and not train.init_tiled:
        text = f"the layers of {where} are {deeper.hidden_size} wide, but those of [model] are {network.hidden_size}"
        yield _LAYERS, f"{text}; choose a model of the same width, or leave init_layers out"
        return
    if deeper.num_attention_heads != network.num_attention_heads and not train.init_tiled:
        text = f"the layers of {where} have {deeper.num_attention_heads} attention heads"
        text += (
            f", but those of [model] have {network.num_attention_heads}, which would interpret the same weights "
            "differently"
        )
        yield _LAYERS, f"{text}; choose a model with the same number, or leave init_layers out"
        return
    if deeper.layer_norm_eps != network.layer_norm_eps:
        text = f"the layer norms of {where} have an epsilon of {deeper.layer_norm_eps:g}, but those of [model]"
        yield _LAYERS, f"{text} have {network.layer_norm_eps:g}; choose a model with the same, or leave init_layers out"
    if deeper.family == network.family:
        for name in (each for each in type(network).model_fields if each.endswith("_theta")):
            if getattr(deeper, name) != getattr(network, name):
                text = f"{name} is {getattr(deeper, name)} in {where} but {getattr(network, name)} in [model]"
                yield _LAYERS, f"{text}; give [model] the same"
        if wrong := other_kinds(network, deeper, layers):
            yield _LAYERS, wrong


def wrong_teacher(train: TrainConfig, network: NetworkConfig, vocab: VocabConfig, pairs: bool) -> Iterator[Mistake]:
    """Yield a teacher that is invalid, or does not match the network, its data, or the given vocabulary."""
    if not isinstance(config := train.objective, DistillationConfig):
        return
    for i, phase in enumerate(train.phases):
        if phase.micro_batch == "auto":
            text = "auto considers only the network, but train.objective also has a teacher in memory"
            yield f"train.phases.{i}.micro_batch", f"{text}; give a number of sequences"
    try:
        teacher = read_pretrained(config.teacher)
        difference = other_vocabulary(teacher, vocab) if vocab.file else ""
    except BertwrightError as error:
        yield KEY, str(error)
        return
    lengths = {f"train.phases.{i}.length": phase.length for i, phase in enumerate(train.phases)}
    # Imported data may hold pairs, whatever the plan of the recipe is.
    segments = 2 if pairs or train.imported_data() else 1
    try:
        yield from misfits(config, teacher, network, lengths, segments)
    except BertwrightError as error:
        yield KEY, str(error)
    # The teacher computes with the network's kernel.
    if text := unsupported_heads(train.attention, teacher.network, KEY):
        yield "train.attention", f"{train.attention} {text}"
    if difference:
        yield KEY, f"{teacher.path} {other_words(teacher, f'vocab.file {vocab.file}', difference)}"


def _task_of(sections: Mapping[str, Any]) -> TaskConfig:
    """The task of a checkpoint; manifests omit defaults, of which pre-training is one."""
    objective = sections.get("train", {}).get("objective", {})
    return TypeAdapter[TaskConfig](TaskConfig).validate_python({"kind": "pretraining", **objective})


def _wrong_checkpoint(
    path: Path, checkpoint: Artifact, network: NetworkConfig, optim: OptimConfig, vocab: VocabConfig
) -> Iterator[str]:
    """Yield why training cannot start from a checkpoint."""
    sections: Mapping[str, Any] = checkpoint.manifest["config"]
    if not network.predicts_tokens:
        yield (
            f"{path} is a checkpoint, but a classifier starts from a finished model; give the train folder of that "
            "training once it is finished, or the folder that bertwright export makes of it, also before"
        )
    elif _task_of(sections).files is not None:
        yield (
            f"{path} is a checkpoint of a classifier, without the head that predicts masked tokens; give one of a "
            "pre-training, such as the one that it started from"
        )
    elif wrong := other_moments(optim.kind, sections.get("optim", {}).get("kind", optim.kind)):
        yield f"{path} {wrong}"
    elif (
        vocab.file is not None and vocab.hash_of(entries_of(vocab.file)) != checkpoint.manifest["inputs"]["vocabulary"]
    ):
        yield (
            f"{path} was trained with another vocabulary than vocab.file {vocab.file}, or with other text settings: "
            "its embeddings belong to other words; set vocab.file to the vocabulary of that training"
        )
    else:
        yield from (text for _, text in _wrong_network(path, network_of(sections), network, None))
