"""Contradictions between sections of a recipe, each as a key and a sentence; `Recipe.check` runs all checks.

A section's own validators check it on its own. These checks compare several sections; the last ones are of recipes
whose task has files of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import RecipeError
from bertwright.corpus.config import CorpusConfig
from bertwright.evaluate.config import EvaluateConfig
from bertwright.examples.config import ExamplesConfig, MaskingConfig
from bertwright.model.config import ModelConfig, NetworkConfig, unsupported_heads
from bertwright.optim.by_name import match_groups
from bertwright.optim.config import OptimConfig
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import wrong_ranks
from bertwright.vocab.config import VocabConfig

Mistake = tuple[str, str]
"""A dotted key and what is wrong with its value."""
_COMPARED = TrainConfig.model_fields["compare_ranks_every"].default


def missing_without_corpus(vocab: VocabConfig, train: TrainConfig) -> Iterator[Mistake]:
    """Yield what a recipe without a corpus must set, because only a corpus could supply it otherwise."""
    if vocab.file is None:
        text = "there is no [corpus] to train a vocabulary on"
        yield "vocab.file", f"{text}; set it to the vocab.txt that the data was made with, or add a [corpus]"
    for i, phase in enumerate(train.phases):
        if phase.data is None:
            text = "there is no [corpus] to make examples from"
            yield f"train.phases.{i}.data", f"{text}; give files of examples, or add a [corpus]"
        elif (phase.data / MANIFEST).is_file():
            text = (
                f"{phase.data} is an examples folder made by bertwright, but there is no [corpus] with its held-out "
                "documents"
            )
            yield (
                f"train.phases.{i}.data",
                f"{text}; add the [corpus], or give files of examples (see bertwright convert)",
            )


def general_text_unread(evaluate: EvaluateConfig, corpus: CorpusConfig | None, own_files: bool) -> Iterator[Mistake]:
    """Yield general texts that are not scored: by a task without masked tokens, or without the rules of a corpus."""
    if evaluate.general and own_files:
        yield "evaluate.general", "only the loss of masked tokens is measured on it, and train.objective has none"
    elif evaluate.general and corpus is None:
        yield "evaluate.general", "it is read by the rules of [corpus], which the recipe does not have; leave it out"


def wrong_lengths(train: TrainConfig, scored: int, positions: int) -> Iterator[Mistake]:
    """Yield lengths beyond the model's `positions`, and a `scored` length (0: the last phase's) that no phase has."""
    trained = sorted({p.length for p in train.phases})
    if scored and scored not in trained:
        yield (
            "evaluate.length",
            f"{scored} is not the length of any phase, so no held-out examples have it; give one of {trained}",
        )
    lengths = {f"train.phases.{i}.length": p.length for i, p in enumerate(train.phases)}
    for key, length in (lengths | {"evaluate.length": scored}).items():
        if length > positions:
            text = f"{length} is longer than the model's {positions} positions"
            yield key, f"{text}; shorten it or raise model.max_positions"


def pairs_unseen(model: ModelConfig, examples: ExamplesConfig) -> Iterator[Mistake]:
    """Yield examples of pairs for a family of networks without segment embeddings."""
    if examples.pairs and not model.takes_pairs:
        text = f"{model.kind} has no segments and no next-sentence head, but examples.plan={examples.plan} makes pairs"
        yield "model.kind", f"{text}; set examples.plan=full-sentences or doc-sentences, or model.kind=bert"


def one_segment(
    model: ModelConfig, network: NetworkConfig, train: TrainConfig, examples: ExamplesConfig
) -> Iterator[Mistake]:
    """Yield a network read from a file that has one segment embedding, if there are sentence pairs."""
    if network.segments == 1 and (examples.pairs or train.imported_data()):
        text = f"{model.config} has type_vocab_size 1, but sentence pairs have 2 segments"
        remedy = "write 2 there" + (", or set examples.plan=doc-sentences" if examples.pairs else "")
        yield "model.config", f"{text}; {remedy}"


def unsupported_by_graph(train: TrainConfig, model: ModelConfig) -> Iterator[Mistake]:
    """Yield what a network compiled or exported for fixed shapes does not support."""
    graph = f"train.graph={train.graph.kind}"
    if train.graph.kind in ("auto", "eager"):
        return
    if train.graph.kind == "ortmodule":
        yield from _unsupported_by_onnx(train, model)
        if train.objective.files:
            text = "the network of this task cannot be exported for ONNX Runtime"
            yield "train.objective", f"{text}; set train.graph=eager, or compiled"
    if train.attention == "sequences":
        text = f"makes different calls for every batch, but {graph} uses one graph for all batches"
        yield "train.attention", f"sequences {text}; set train.attention=auto, or train.graph=eager"
    if train.objective.compares_layers:
        text = "compares hidden states of single layers, which are not available when the network runs as one graph"
        yield "train.objective.hidden_weight", f"{text}; set it to 0, or train.graph=eager"
    several = train.objective.files is not None and train.objective.files.several_sequences
    if train.graph.kind == "compiled" and not several:  # it fills rows as far as micro_batch or micro_tokens allow
        return
    for i, phase in enumerate(train.phases):
        if phase.packing and phase.micro_batch in (0, "auto"):
            text = f"is a number of sequences unless it is set, but {graph} needs a fixed number of rows"
            yield f"train.phases.{i}.micro_batch", f"{text}; set it to the rows of a forward pass, or set packing=false"
        if phase.micro_tokens:
            text = f"{phase.micro_tokens:,} gives every batch a different shape, but {graph} needs fixed shapes"
            yield (
                f"train.phases.{i}.micro_tokens",
                f"{text}; set micro_batch and packing instead, or set train.graph=eager",
            )


def unsupported_by_comparing(train: TrainConfig) -> Iterator[Mistake]:
    """Yield what a loss that compares all sequences of a step does not support."""
    if not train.objective.compares_sequences:
        return
    task = f"train.objective={train.objective.kind}"
    if train.engine.kind == "deepspeed":
        text = f"deepspeed expects a backward pass after each forward pass, but {task} computes all vectors first"
        yield "train.engine", f"{text}; set train.engine=zero or fsdp"
    for i, phase in enumerate(train.phases):
        if phase.batch < 2:
            text = f"{phase.batch}: {task} compares the examples of a step with each other"
            yield f"train.phases.{i}.batch", f"{text}; raise it: the more there are, the more is learned"


def unsupported_by_kernels(train: TrainConfig, model: ModelConfig) -> Iterator[Mistake]:
    """Yield a network whose layers our own kernels do not compute."""
    if train.kernels == "triton" and model.kind == "modern":
        text = (
            "triton joins biases with what follows them, but a ModernBERT has none, and torch's compiler fuses the rest"
        )
        yield "train.kernels", f"{text}; set train.kernels=torch, or model.kind=bert"


def _unsupported_by_onnx(train: TrainConfig, model: ModelConfig) -> Iterator[Mistake]:
    """Yield what ONNX Runtime does not support, in its last release that trains."""
    graph = "train.graph=ortmodule"
    if train.precision.kind not in ("auto", "fp32"):
        text = f"{train.precision.kind} is available only in torch, but {graph} computes in float32"
        yield "train.precision", f"{text}; set train.precision=fp32, or train.graph=eager"
    if train.attention in ("varlen", "triton"):
        text = f"{train.attention} is a kernel for GPUs, but {graph} computes on a CPU"
        yield "train.attention", f"{text}; set train.attention=auto"
    if train.kernels == "triton":
        text = f"triton are kernels for GPUs, but {graph} computes on a CPU"
        yield "train.kernels", f"{text}; set train.kernels=torch"
    if train.device == "cuda":
        yield "train.device", f"cuda: {graph} computes on a CPU; set train.device=cpu, or train.graph=compiled"
    if train.checkpoint_activations:
        text = f"makes torch compute layers again, but with {graph} torch computes no layers"
        yield "train.checkpoint_activations", f"{text}; set it to false, or train.graph=eager"
    if model.kind == "modern":
        text = f"modern has layer norms without biases, but {graph} cannot compute gradients through those"
        yield "model.kind", f"{text}; set train.graph=eager, or model.kind=bert"


def without_kernel(train: TrainConfig, network: NetworkConfig) -> Iterator[Mistake]:
    """Yield what the attention kernel does not support, of the recipe and of its network."""
    if text := unsupported_heads(train.attention, network, "[model]"):
        yield "train.attention", f"{train.attention} {text}"
    if train.attention != "varlen":
        return
    if train.precision.kind in ("fp32", "tf32", "bf32"):
        text = f"varlen computes only in bf16 or fp16, but train.precision={train.precision.kind}"
        yield "train.attention", f"{text}; set train.precision=bf16, or train.attention=padded"
    if dropout := network.attention_probs_dropout_prob:
        text = f"varlen does not support dropout of attention weights, but that of [model] is {dropout:g}"
        yield "train.attention", f"{text}; set model.attention_dropout=0, or train.attention=padded"


def unsupported_by_sharding(train: TrainConfig, optim: OptimConfig) -> Iterator[Mistake]:
    """Yield settings that need entire weights or gradients where each rank holds shards of them."""
    engine = train.engine.kind
    if engine not in ("fsdp", "deepspeed"):
        return
    low = getattr(train.precision, "weights", "fp32") != "fp32"
    # DeepSpeed's network in float16 has weights in float16, and shards the float32 ones.
    parts = engine == "fsdp" or getattr(train.engine, "stage", 0) == 3 or train.precision.kind == "fp16"
    needs_full_tensors = {
        "train.averaging": parts and train.averaging.kind != "none",
        "train.precision": low,
        "train.graph": train.graph.kind not in ("auto", "eager"),
        "optim.kind": engine == "deepspeed" and optim.kind != "adamw",
        # The default is no request, and 0 turns it off.
        "train.compare_ranks_every": train.compare_ranks_every not in (0, _COMPARED),
        "optim.clip_before_reduction": getattr(optim, "clip_before_reduction", False),
        **{f"train.phases.{i}.micro_batch": phase.micro_batch == "auto" for i, phase in enumerate(train.phases)},
    }
    for key in (key for key, requested in needs_full_tensors.items() if requested):
        text = f"its value needs whole tensors, but with train.engine={engine} each rank has only parts of them"
        yield key, f"{text}; set train.engine=zero, or leave it out"


def clipped_before_judged(train: TrainConfig, optim: OptimConfig, ranks: int) -> Iterator[Mistake]:
    """Yield a limit on the gradient norm where several `ranks` clip their parts of the gradient before the sum."""
    if ranks > 1 and train.guard.spike and getattr(optim, "clip_before_reduction", False):
        text = f"judges the norm of the summed gradient, but with optim.clip_before_reduction each of {ranks} ranks"
        text += f" clips its part first, so that norm is at most optim.max_grad_norm {optim.max_grad_norm:g}"
        yield "train.guard.spike", f"{text}; set train.guard.loss_spike instead, or leave one of the two out"


def wrong_groups(optim: OptimConfig, network: NetworkConfig) -> Iterator[Mistake]:
    """Yield patterns of `optim.groups` that match no tensor of the network, or one that another pattern matches too."""
    try:
        match_groups(list(network.tensors), optim.groups)
    except RecipeError as error:
        # Its messages begin with the key.
        key, _, message = str(error).partition(" ")
        yield key, message


def too_many_ranks(train: TrainConfig, ranks: int) -> Iterator[Mistake]:
    """Yield a global batch too small for one micro-batch per rank, and an engine that does not support `ranks`."""
    if wrong := wrong_ranks(train.engine, ranks):
        yield "train.engine", wrong
    for i, phase in enumerate(train.phases):
        if phase.batch_warmup and phase.batch_warmup[0][1] < ranks:
            text = f"starts with {phase.batch_warmup[0][1]}, fewer than {ranks} ranks; raise it or use fewer ranks"
            yield f"train.phases.{i}.batch_warmup", text
        # auto lowers itself to what a rank gets.
        micro_batch = 0 if phase.micro_batch == "auto" else phase.micro_batch
        share = max(micro_batch, 1) * ranks
        if phase.batch < share:
            what = f"micro_batch {micro_batch} x {ranks} ranks" if micro_batch else f"{ranks} ranks"
            text = f"{phase.batch} is smaller than {what} = {share}; raise it or use fewer ranks"
            yield f"train.phases.{i}.batch", text


_OF_TEXT = ("passes", "plan", "short_seq_prob", "random_next_prob", "random_label", "seed")
"""Settings of examples that are built from running text."""
_OF_MASKS = ("mask_rate", "cloze")
"""Settings of scores on masked tokens."""


def unused_with_own_files(train: TrainConfig, evaluate: EvaluateConfig, examples: ExamplesConfig) -> Iterator[Mistake]:
    """Yield settings that have no effect on a task with files of its own, and data that is none of these files."""
    task, own = train.objective.kind, train.objective.files
    labelled = f"labelled {own.unit if own else 'texts'}"
    for i, phase in enumerate(train.phases):
        key = f"train.phases.{i}"
        if phase.data is None:
            yield (
                f"{key}.data",
                f"train.objective={task} trains on {labelled}; set this key to their folder or file",
            )
        elif (phase.data / MANIFEST).is_file():
            yield (
                f"{key}.data",
                f"{phase.data} is an examples folder made by bertwright, without labels; give files of {labelled}",
            )
        elif phase.data != train.phases[0].data:
            text = f"{phase.data} is not the data of phase 0, but all phases of this task must use the same"
            yield f"{key}.data", f"{text} files; give {train.phases[0].data}"
        if phase.masking != MaskingConfig():
            yield f"{key}.masking", f"{task} masks no tokens; leave it out"
        if phase.document_range != (0.0, 1.0):
            text = f"{list(phase.document_range)} is a share of documents, but this data consists of {labelled}"
            yield f"{key}.document_range", f"{text}; leave it out"
        if phase.quarantine:
            yield (
                f"{key}.quarantine",
                f"applies to files of finished examples, but this data consists of {labelled}; leave it out",
            )
        if phase.packing and own and own.several_sequences:
            text = "packs whole examples into rows of one length, but an example of this task is several sequences"
            yield f"{key}.packing", f"{text}; set it to false, or set micro_tokens"
        if phase.target_accuracy is not None:
            yield f"{key}.target_accuracy", f"applies to masked tokens, but {task} masks no tokens; leave it out"
    for section, names, config in (("examples", _OF_TEXT, examples), ("evaluate", _OF_MASKS, evaluate)):
        fields = type(config).model_fields
        for name in names:
            if getattr(config, name) != fields[name].default:
                yield f"{section}.{name}", f"has no effect with train.objective={task}; leave it out"
    if train.init_from and not train.phases[0].restart_bias_correction:
        text = (
            "false needs optimizer moments to continue from, but a classifier takes only the weights of train.init_from"
        )
        yield "train.phases.0.restart_bias_correction", f"{text}; leave it out"
    yield from _starts_of_pretraining(train)


def _starts_of_pretraining(train: TrainConfig) -> Iterator[Mistake]:
    if train.init_layers:
        yield "train.init_layers", "are for pre-training; a classifier starts from all layers of train.init_from"
    if train.init_tiled:
        yield "train.init_tiled", "is for pre-training; a classifier has the sizes of train.init_from"
    if train.init_embeddings != "random":
        text = f"{train.init_embeddings} is for pre-training; a classifier keeps the vocabulary of train.init_from"
        yield "train.init_embeddings", f"{text}; leave it out"


def idle_corpus(corpus: CorpusConfig | None, vocab: VocabConfig) -> Iterator[Mistake]:
    """Yield a corpus that nothing reads, and a missing vocabulary that nothing can be trained on."""
    if corpus is not None and vocab.file is not None:
        text = "no stage reads it: this task trains on the data of its phases, and vocab.file is already finished"
        yield "corpus", f"{text}; leave the section out"
    if corpus is None and vocab.file is None:
        text = "there is no [corpus] to train a vocabulary on"
        yield "vocab.file", f"{text}; give the vocab.txt of the network in train.init_from, or add a [corpus]"
