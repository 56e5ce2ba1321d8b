"""Speed to quality: how much sooner ours reaches the final held-out loss of an hour of Hugging Face's Trainer.

    python benchmarks/speedrun.py FOLDER TEXT                    all parts; a second start continues
    python benchmarks/speedrun.py FOLDER TEXT --only peer        one part: text, peer, ours, ladder or report
    python benchmarks/speedrun.py FOLDER TEXT --size tiny        another network, for both sides
    python benchmarks/speedrun.py FOLDER TEXT --kind modern      ModernBERT on both sides instead of BERT
    python benchmarks/speedrun.py FOLDER TEXT --on bf16 batch8   ours, and a ladder, with rungs already won

`peer`: Trainer with the conventions of its run_mlm.py, at the best of `--rates`, for `--minutes`; its curve has twelve
scores. If it does not end at least 1 nat below the unigram loss, it has hardly learnt to use the context, and the
comparison is void.

`ours`: for each of `--seeds`, trainings of 1/10, 1/8, 1/6 ... of the peer's time, each with a learning rate that decays
to zero at its end, until one ends at or below the peer's final loss. A single long training with scores along the way
would understate our speed, because its learning rate is still high where that of a shorter one has decayed; and nobody
could have stopped it at the moment it crossed without knowing that moment. The reported time is that of a training that
a user could have started; the ratio is a lower bound, because no time between two trainings was tried.

`ladder`: the start (the baseline of the ladder) with every seed, and every other rung (speedrun_rungs.toml: one change
each) with the first seed. A rung has won or lost if it is more than two standard deviations of the start from its mean.
Rungs that this machine cannot run are in the table too.

Time is training alone, including the drawing of batches and embeddings made from the text, without start-up, scoring
and saving, with SPEEDRUN_THREADS threads (2 unless set). Both sides are scored alike, on the same held-out sentences
with the same masks. A second start continues interrupted measurements and does not repeat finished ones. Run nothing
else on those processors meanwhile. report.json and report.md show what has been measured so far.
"""

import json
import sys

from speedrun_ours import check_rungs, make_text, rungs_of, train_ours
from speedrun_report import markdown, report
from speedrun_setting import Note, Setting, setting_of

STEPS = ("text", "peer", "ours", "ladder", "report")


def peer(setting: Setting) -> Note:
    """The peer's training at the best of its learning rates."""
    from speedrun_peer import train_peer

    if len(setting.rates) == 1:
        return train_peer(setting, setting.minutes, setting.rates[0])
    tried = {rate: train_peer(setting, setting.rung_minutes, rate)["loss"] for rate in setting.rates}
    return train_peer(setting, setting.minutes, min(tried, key=tried.__getitem__))


def ours(setting: Setting, theirs: Note) -> None:
    """For each seed, train from the shortest time upwards until a training is as good as the peer's."""
    for seed in range(1, setting.seeds + 1):
        for times in sorted(setting.times, reverse=True):
            found = train_ours(setting, setting.on, theirs["seconds"] / times / 60, seed)
            if "refused" in found or found["loss"] <= theirs["loss"]:
                break


def ladder(setting: Setting) -> None:
    """Train the start with every seed, and each rung."""
    for seed in range(1, setting.seeds + 1):
        train_ours(setting, setting.on, setting.rung_minutes, seed)
    for rung in setting.rungs or rungs_of():
        if rung not in setting.on:
            train_ours(setting, (*setting.on, rung), setting.rung_minutes, 1)


def main(*arguments: str) -> None:
    """Run the requested parts and what they depend on."""
    setting, steps = setting_of(arguments, __doc__, STEPS)
    check_rungs((*setting.on, *setting.rungs))
    setting.claim()
    make_text(setting)
    theirs = peer(setting) if {"peer", "ours"} & set(steps) else None
    if theirs and "ours" in steps:
        ours(setting, theirs)
    if "ladder" in steps:
        ladder(setting)
    found = report(setting.notes(), setting)
    (setting.folder / "report.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (setting.folder / "report.md").write_text(markdown(found), encoding="utf-8")
    print(markdown(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
