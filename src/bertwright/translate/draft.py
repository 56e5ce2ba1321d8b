"""The keys of a recipe collected from several commands, each with its origin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from posixpath import normpath
from typing import Any, NamedTuple

from bertwright.core.errors import RecipeError
from bertwright.translate.command import ASSUMED, PHASE, Command, Key
from bertwright.translate.conversions import networks, phases, running, texts, trainer
from bertwright.translate.deepspeed_file import compare_with_command, missing_file, unread_keys

Conversion = Callable[[Command, str], Iterator[Key]]
MODULES = (phases, running, networks, texts, trainer)
OPEN_BATCH = "batch of the phase of length"
"""How the question for a batch begins that no command determines."""
OPEN_SOURCE = "corpus.source"
"""How the question for a text begins that no command names."""


class Account(NamedTuple):
    """What became of an option that a command sets."""

    option: str
    """The option as typed."""
    keys: tuple[str, ...]
    """The keys that the option became; none if it has no effect here."""
    note: str
    """How the keys differ from the option, or why there are none."""


@dataclass
class Draft:
    """A recipe under construction."""

    keys: dict[str, Key] = field(default_factory=dict)
    """The keys outside the phases, by name."""
    phases: list[dict[str, Key]] = field(default_factory=list)
    """The keys of each training phase, without `train.phases.N.`."""
    prepared: list[dict[str, Key]] = field(default_factory=list)
    """The keys of each length that data is prepared for."""
    accounts: list[Account] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What is wrong or contradictory in the original commands."""
    open: list[str] = field(default_factory=list)
    """What the commands do not state and only the user knows."""

    def add(self, command: Command) -> None:
        """Add the settings of a command; a value that contradicts an earlier command's is remarked on."""
        phase: dict[str, Key] = {}
        for name, value in command.program.recipe.items():
            key = Key(name, *value) if isinstance(value, list) else Key(name, value)
            self._take(_assumed(command, key), phase)
        # Defaults first, so that what the command sets wins where two options share a key.
        for name, setting in sorted(command.settings.items(), key=lambda item: item[1].given):
            made = list(_keys(command, name))
            for key in made:
                self._take(key, phase)
            if setting.given:
                original = command.program.original(name)
                names = tuple(dict.fromkeys(key.key for key in made))
                self._record(Account(setting.text, names, original.note if original else ""))
        self._report_uncounted(command, phase)
        for remark in (*_remarks(command), *compare_with_command(command), *unseen_events(command)):
            self.remark(remark)
        for option, why in unread_keys(command):
            self._record(Account(option, (), why))
        self.open += [question for question in missing_file(command) if question not in self.open]
        if command.program.phase == "training":
            self.phases.append(phase)
        elif phase:
            self.prepared.append(phase)

    def _report_uncounted(self, command: Command, phase: dict[str, Key]) -> None:
        """Report that the number of processes is not known, and which batch is missing for that reason."""
        if not (uncounted := command.launch.uncounted) or command.program.phase != "training":
            return
        unknown = "how many those are, only the machine knows"
        self._record(Account(uncounted.option, (), f"It starts {uncounted.starts}; {unknown}."))
        # The Trainer counts the sequences of a pass, the others those of an update.
        passes = command.number("per_device_train_batch_size") * command.number("gradient_accumulation_steps", 1)
        one = int(command.number("train_batch_size", passes))
        if "batch" not in phase:
            self.open.append(
                f"{OPEN_BATCH} {phase['length'].value}: {uncounted.option} starts {uncounted.starts}, "
                f"and {unknown}. Set it to {one} (the sequences of one process and update) times the "
                "processes, or add the number to the command and translate again."
            )

    def account_for_script(self, command: Command, passed: set[str]) -> None:
        """Account for the arguments of a script that are not `passed` on to the commands it starts."""
        # Drop accounts of arguments that an earlier script did not use, but this one does.
        read = {setting.text for name, setting in command.settings.items() if name in passed}
        self.accounts = [account for account in self.accounts if account.option not in read]
        for name, setting in command.settings.items():
            if setting.given and name not in passed:
                original = command.program.original(name)
                note = original.note if original else ""
                self._record(Account(setting.text, (), note or "nothing that the script starts reads it"))
        for remark in _remarks(command):
            self.remark(remark)

    def remark(self, text: str) -> None:
        """Add a remark, unless it was made before."""
        if text not in self.remarks:
            self.remarks.append(text)

    def value(self, key: str) -> Any:
        """Return the value of a key outside the phases; None if it is not set."""
        return self.keys[key].value if key in self.keys else None

    def _record(self, account: Account) -> None:
        if account not in self.accounts:
            self.accounts.append(account)

    def _take(self, key: Key, phase: dict[str, Key]) -> None:
        if key.key.startswith(PHASE):
            name = key.key.removeprefix(PHASE)
            phase[name] = key._replace(key=name)
            return
        if key.key == "train.init_from" and self.phases:
            return  # weights from an earlier command, which phases pass on by themselves
        before = self.keys.get(key.key)
        if before and before.value != key.value and self.phases and key.key.startswith(("train.", "optim.")):
            self.remark(
                f"{key.why} contradicts {before.why} of an earlier command: {key.key} has one value per run; the "
                "first one is used."
            )
            return
        # The original creates one shard per command, and reads all of them.
        both = before and key.key == "corpus.source" and _joined(before, key)
        self.keys[key.key] = both or key


def _joined(before: Key, key: Key) -> Key | None:
    """Join the sources of two commands that read text of one form; None if one command reads the other's output."""
    ours, more = (value if isinstance(value, list) else [value] for value in (before.value, key.value))
    if not all(isinstance(each, dict) for each in (*ours, *more)):
        return None
    new = [each for each in more if each not in ours]
    return Key(key.key, [*ours, *new], f"{before.why}, {key.why}") if new else before


def _keys(command: Command, name: str) -> Iterator[Key]:
    """Yield the keys that an option of a command becomes."""
    option, original = command.program.options[name], command.program.original(name)
    if option.becomes:
        yield from (_assumed(command, key) for key in conversion(option.becomes)(command, name))
    elif original and original.keys:
        yield _assumed(command, Key(original.keys[0], command[name], command.source(name)))


def _assumed(command: Command, key: Key) -> Key:
    """Mark the vocabulary of a training as assumed; other keys are returned as they are."""
    assumed = command.program.phase == "training" and key.key.startswith("vocab.")
    return key._replace(key=f"{ASSUMED}{key.key}") if assumed else key


def conversion(name: str) -> Conversion:
    """Return the function that `Option.becomes` names; raises `StopIteration` if there is none, which a test checks."""
    found: Iterator[Conversion] = (vars(module)[name] for module in MODULES if name in vars(module))
    return next(found)


def _remarks(command: Command) -> Iterator[str]:
    given = {name for name, setting in command.settings.items() if setting.given}
    for remark in command.program.remarks:
        fits = given >= set(remark.given) and not given & set(remark.not_given)
        fits = fits and all(command[name] == value for name, value in remark.equal.items())
        if fits and not any(command[name] == value for name, value in remark.other.items()):
            yield remark.text


def nest(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested tables; raise `RecipeError` if two of them exclude each other."""
    tree: dict[str, Any] = {}
    for dotted, value in keys.items():
        *above, last = dotted.split(".")
        table = tree
        for part in above:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise RecipeError(f"{dotted}: {part} has a value already. Give the commands one at a time.")
        table[last] = value
    return tree


def unseen_events(command: Command) -> Iterator[str]:
    """Yield where TensorBoard looks for events in the job of a command that writes them to another folder."""
    name = command.option_of("tensorboard")
    written = str(command[name] or "")
    for service in command.launch.stated:
        known = written and service.shows and "$" not in written + service.shows
        if known and normpath(written) != normpath(service.shows):
            yield (
                f"{service.setting} is not the folder that events are written to, {written} ({command.source(name)}), "
                "so TensorBoard shows nothing in the original. Here it shows the folder that the recipe writes to."
            )
