"""The sections on how the run was made: network, phases, stages with their fingerprints, machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bertwright.core.numbers import duration, number, operations, size_of
from bertwright.page.markup import Content, Element, b, bar, code, definitions, p, small, table
from bertwright.report.facts import Facts
from bertwright.tasks.title import start_of


def model(facts: Facts) -> Content:
    """The network's shape, its optimizer, and a row per phase."""
    counts, settings = facts.counts("train"), facts.stages["train"].manifest["config"]
    network = counts["network"]
    # Missing for a BERT: networks were trained before there were other families.
    family = settings.get("model", {}).get("kind")
    shape = [
        *([("family", family)] if family else []),
        ("parameters", number(counts["parameters"])),
        ("layers", number(network["num_hidden_layers"])),
        ("hidden size", number(network["hidden_size"])),
        ("attention heads", number(network["num_attention_heads"])),
        ("inner size", number(network["intermediate_size"])),
        ("positions", number(network["max_position_embeddings"])),
        ("vocabulary rows", number(network["vocab_size"])),
        ("dropout", number(network["hidden_dropout_prob"])),
        ("next-sentence head", "yes" if network["next_sentence"] else "no"),
        ("optimizer", settings["optim"]["kind"]),
        ("weight decay", number(settings["optim"]["weight_decay"])),
        ("started from", start_of(counts["init"])),
    ]
    rows = [_phase(facts, index, phase, planned) for index, (phase, planned, _) in enumerate(facts.phases)]
    head = ("phase", "length", "batch", "steps", "peak rate", "schedule", "warm-up", "masked")
    notes = [*_averaging(counts.get("averaging")), *_grown(counts["extensions"]), *_left_out(counts["left_out"])]
    return definitions(shape), table(head, rows), notes


def _averaging(found: Mapping[str, Any] | None) -> list[Element]:
    """How the average of the weights compares with the last weights; empty without an average."""
    if found is None:
        return []
    average, last = (
        next((value for name, value in found[scores].items() if name.endswith("_loss")), None)
        for scores in ("heldout", "trained_heldout")
    )
    losses = ["not a number" if loss is None else f"{loss:.3f}" for loss in (average, last)]
    better, kept = ("average" if found[name] == "average" else "last weights" for name in ("better", "kept"))
    return [
        p(
            f"The average of the weights is {found['description']}. At the end of training its held-out loss was "
            f"{losses[0]}, that of the last weights {losses[1]}: the {better} {'is' if better == 'average' else 'are'} "
            f"better, and the model has the {kept}."
        )
    ]


def _grown(extensions: Sequence[Mapping[str, int]]) -> list[Element]:
    return [
        p(
            f"Phase {e['phase']} was extended from {e['from']:,} to {e['to']:,} steps at step {e['step']:,}: its "
            "learning rates before that are those of the shorter phase."
        )
        for e in extensions
    ]


def _left_out(ranges: Sequence[Mapping[str, int]]) -> list[Element]:
    return [
        p(
            f"In phase {e['phase']} the batches {e['from']:,} to {e['to'] - 1:,} were skipped: gradients or losses "
            "went wrong, and training returned to the checkpoint before them."
        )
        for e in ranges
    ]


def _phase(facts: Facts, index: int, phase: Mapping[str, Any], planned: int) -> tuple[str, ...]:
    # Counted from the rows: an unfinished training, or one that ended early, has fewer steps than planned.
    steps = max((row["step"] for row in facts.metrics if row["phase"] == index), default=0)
    return (
        f"{index}",
        number(phase["length"]),
        "".join(f"{number(size)}, " for _, size in phase.get("batch_warmup", ())[:-1]) + number(phase["batch"]),
        number(steps) if steps == planned else f"{steps:,} of {planned:,}",
        f"{phase['learning_rate']:g}",
        phase["schedule"]["kind"],
        f"{phase['warmup']:.0%}" if phase["warmup"] < 1 else f"{phase['warmup']:,} steps",
        _rates(phase["masking"]["rate"]),
    )


def _rates(rate: float | list[list[float]]) -> str:
    """A constant rate, or each rate with its first step."""
    return ", ".join(f"{r:.0%} from {s:,.0f}" for s, r in rate) if isinstance(rate, list) else f"{rate:.0%}"


def stages(facts: Facts, seconds: float) -> Content:
    """Version, time and fingerprint of each stage: runs with equal fingerprints produced the same results."""
    rows: list[tuple[Content, ...]] = []
    for name, artifact in facts.stages.items():
        took, version = artifact.manifest["seconds"], artifact.manifest["version"]
        # Avoids division by zero if all stages took no time.
        time = bar(took / (seconds or 1)), small(duration(took))
        rows.append((b(name), str(version), time, code(artifact.fingerprint)))
    about = (
        "A fingerprint is the SHA-256 of a stage's settings, the version of its code and the fingerprints of its "
        "inputs: where it is the same, so is the result."
    )
    return p(about), table(("stage", "version", "time", "fingerprint"), rows, "stages")


def machine(facts: Facts) -> Content:
    """The machine that training ran on, and how the exported folder was verified."""
    train = facts.counts("train")
    rows = [
        ("device", train["device"]),
        ("ranks", number(train["ranks"])),
        ("threads", number(train["threads"])),
        ("torch", train["torch"]),
        ("time in training steps", duration(train["train_seconds"])),
        ("with scoring and saving, all starts", duration(train["hours"] * 3600)),
        ("operations of the model", operations(train["tflops_done"])),
    ]
    rows += [(f"plugin {key}", package) for key, package in train["sessions"][-1].get("plugins", {}).items()]
    # Unknown while training is unfinished.
    if train["peak_memory_bytes"] is not None:
        rows.append(("peak memory of training", size_of(train["peak_memory_bytes"])))
    if "export" in facts.stages:
        export = facts.counts("export")
        rows.append(("export read back by", f"transformers {export['transformers']}"))
        largest = max(float(export[name]) for name in export if name.endswith("_difference"))
        rows.append(("its logits differ by at most", f"{largest:.1e}"))
    return definitions(rows), _starts(train["sessions"])


_REASONS = ("precision_reason", "graph_reason", "attention_reason")
"""Why settings `auto` were resolved as they were, by the keys of a start's record."""


def _starts(sessions: Sequence[Mapping[str, Any]]) -> Content:
    """A row for each start of the program, with what bit-identity depends on besides the settings."""
    rows = [
        (
            f"{session['from_step']:,}",
            number(session["ranks"]),
            number(session["threads"]),
            session["device"],
            session["machine"],
            session["torch"],
            session.get("precision", ""),
            session.get("graph", ""),
            session.get("attention", ""),
            "; ".join(session[key] for key in _REASONS if key in session),
        )
        for session in sessions
    ]
    times = f"{len(rows):,} times" if len(rows) > 1 else "once"
    head = ("from step", "ranks", "threads", "device", "processor", "torch", "precision", "graph", "attention", "why")
    return p(f"Training was started {times}."), table(head, rows)
