"""Reads a pickle without executing it.

A pickle is a program for a stack machine, and some of its instructions import and call what the file names. This
machine has the same stack, but imports nothing and calls nothing: a class or function stays a name (`Named`), and a
call stays a description of it (`Built`). So no file can run code, whatever it contains. What the description of a
tensor means is decided by the reader of the file, from the description.

Time and memory are bounded by the length of the pickle, which is bounded, too: no instruction makes more than a few
values, and values are never hashed, compared or printed by their content, except for short keys.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, cast

MAX_INSTRUCTIONS = 1_000_000
"""A checkpoint of 400 tensors, with the moments of an optimizer, has about 50,000."""
MAX_BYTES = 32 * 2**20
"""Maximum length of a pickle, and of a single text in it; without the tensors, that checkpoint has 140 kB."""
_MAX_LINE = 2**16
_MAX_BITS = 1024
_DICTS = {("collections", "OrderedDict"), ("collections", "defaultdict"), ("collections", "Counter")}
_MARK = object()
_PLAIN = {"BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING"}
_PLAIN |= {"SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
_PLAIN |= {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"}
_CONSTANTS: Mapping[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}


@dataclass(frozen=True, eq=False)
class Named:
    """A class or function that a pickle names. It is not looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False)
class Built:
    """What a call would make. The call is not made."""

    of: Any
    """What would be called: a `Named`, or anything else that a file puts in its place."""
    args: Any
    """Its arguments: a tuple, or anything else that a file puts in its place."""
    state: Any = None
    """What the object's attributes would be set to."""
    items: dict[Any, Any] = field(default_factory=dict)
    """What it would contain, if it is a dictionary."""


@dataclass(frozen=True, eq=False)
class Persistent:
    """A reference to something that is stored outside the pickle."""

    key: Any


class Bounded:
    """The part of a file in which a pickle is, for `pickletools`: never reads more than `MAX_BYTES`, or past the end of
    the file."""

    def __init__(self, handle: IO[bytes], size: int) -> None:
        self._handle, self._place = handle, handle.tell()
        self._end = min(size, self._place + MAX_BYTES)

    def tell(self) -> int:
        """The place in the file, in bytes."""
        return self._place

    def read(self, count: int) -> bytes:
        """The next `count` bytes. Raises `ValueError` if there are fewer; a file may announce 2^63."""
        if count > (left := self._end - self._place):
            raise ValueError(f"it ends too early; bytes missing: {count - left:,}")
        self._place += count
        return self._handle.read(count)

    def readline(self) -> bytes:
        """The next line. Raises `ValueError` if it is longer than any name."""
        line = self._handle.readline(min(_MAX_LINE, self._end - self._place))
        if not line.endswith(b"\n"):
            raise ValueError("a name in it does not end")
        self._place += len(line)
        return line


def read_pickle(data: Bounded) -> Any:
    """Return what the next pickle describes, of plain values (None, numbers, texts, tuples, lists, dictionaries),
    `Named`, `Built` and `Persistent`; a set becomes a list. Leaves `data` after its end.

    Containers may contain themselves, as in any pickle. Raises `ValueError` if it is no complete pickle.
    """
    machine = _Machine()
    for number, (opcode, argument, _) in enumerate(pickletools.genops(cast(IO[bytes], data))):
        if number == MAX_INSTRUCTIONS:
            raise ValueError(f"it has more than {MAX_INSTRUCTIONS:,} instructions")
        machine.do(opcode.name, argument)
    return machine.result


class _Machine:
    """The stack, and the memo of values that are used again."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.result: Any = None
        self._copied = 0

    def do(self, name: str, argument: Any) -> None:
        """Do one instruction. Raises `ValueError` if it does not exist here, or not at this place."""
        if name in _PLAIN:
            if isinstance(argument, int) and argument.bit_length() > _MAX_BITS:
                raise ValueError("it has a number of more than 300 digits")
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif (action := _ACTIONS.get(name)) is not None:
            action(self, argument)
        elif name not in ("PROTO", "FRAME"):
            raise ValueError(f"it has the instruction {name}, which no checkpoint needs")

    def pop(self) -> Any:
        """Remove the top of the stack and return it."""
        if not self.stack or self.stack[-1] is _MARK:
            raise ValueError("it takes more values from its stack than there are")
        return self.stack.pop()

    def top(self) -> Any:
        """The top of the stack."""
        if not self.stack or self.stack[-1] is _MARK:
            raise ValueError("it uses a value of its stack where there is none")
        return self.stack[-1]

    def marked(self) -> list[Any]:
        """Remove the values above the newest mark, and the mark, and return the values."""
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                values = self.stack[place + 1 :]
                del self.stack[place:]
                return values
        raise ValueError("it uses a mark where there is none")

    def call(self, of: Any, args: Any) -> None:
        """Describe a call."""
        if isinstance(of, Named) and (of.module, of.name) in _DICTS:
            # Python 2 saved the entries of an OrderedDict as its argument.
            first = args[0] if of.name == "OrderedDict" and isinstance(args, tuple) and args else ()
            pairs = first if isinstance(first, list | tuple) else ()
            # A list can be recalled, and so copied, as often as there are instructions.
            self._copied += len(pairs)
            if self._copied > MAX_INSTRUCTIONS:
                raise ValueError("it copies lists over and over")
            both = [pair for pair in pairs if isinstance(pair, list | tuple) and len(pair) == 2]
            self.stack.append(_entries([value for pair in both for value in pair]))
        else:
            self.stack.append(Built(of, args))

    def put(self, values: list[Any]) -> None:
        """Put keys and values, by turns, into the dictionary at the top of the stack."""
        target = self.top()
        if isinstance(target, Built):
            target.items.update(_entries(values))
        elif isinstance(target, dict):
            target.update(_entries(values))
        else:
            raise ValueError("it puts an entry into something that is no dictionary")

    def extend(self, values: list[Any]) -> None:
        """Append to the list at the top of the stack."""
        target = self.top()
        if isinstance(target, list):
            target.extend(values)
        elif not isinstance(target, Built):
            raise ValueError("it appends to something that is no list")

    def build(self) -> None:
        """Set the attributes of the object at the top of the stack; those of a dictionary are not kept."""
        state, target = self.pop(), self.top()
        if isinstance(target, Built):
            target.state = state

    def recall(self, index: int) -> None:
        """Push a value of the memo."""
        if index not in self.memo:
            raise ValueError(f"it recalls value {index}, which it has not kept")
        self.stack.append(self.memo[index])

    def keep(self, index: int) -> None:
        """Keep the top of the stack in the memo."""
        self.memo[index] = self.top()

    def stop(self) -> None:
        """End with the value at the top of the stack."""
        self.result = self.pop()

    def name_on_stack(self) -> None:
        """Replace two texts by the name that they are."""
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("it names a class by something that is no text")
        self.stack.append(Named(module, name))

    def object(self) -> None:
        """Describe the making of an object whose class lies below its arguments."""
        values = self.marked()
        if not values:
            raise ValueError("it makes an object of no class")
        self.call(values[0], tuple(values[1:]))

    def with_arguments(self, several: bool) -> None:
        """Describe a call with a tuple of arguments, and `several`: with named ones."""
        if several:
            self.pop()
        args = self.pop()
        self.call(self.pop(), args)

    def tuple(self, length: int) -> None:
        """Replace values by a tuple of them."""
        values = [self.pop() for _ in range(length)]
        self.stack.append(tuple(reversed(values)))


def _entries(values: list[Any]) -> dict[Any, Any]:
    """A dictionary of keys and values by turns. Only plain keys are kept: to hash a nested tuple, Python visits all
    its parts, and a short pickle can describe one with 2^60 of them."""
    if len(values) % 2:
        raise ValueError("it puts a key without a value into a dictionary")
    pairs = zip(values[::2], values[1::2], strict=True)
    return {key: value for key, value in pairs if key is None or isinstance(key, str | int | float | bytes)}


def _pair(text: str) -> Named:
    module, _, name = text.partition(" ")
    return Named(module, name)


def _instance(machine: _Machine, text: str) -> None:
    machine.call(_pair(text), tuple(machine.marked()))


_ACTIONS: Mapping[str, Callable[[_Machine, Any], Any]] = {
    "STOP": lambda m, _: m.stop(),
    "MARK": lambda m, _: m.stack.append(_MARK),
    "POP": lambda m, _: m.stack.pop() if m.stack else m.pop(),
    "POP_MARK": lambda m, _: m.marked(),
    "DUP": lambda m, _: m.stack.append(m.top()),
    "EMPTY_TUPLE": lambda m, _: m.stack.append(()),
    "TUPLE1": lambda m, _: m.tuple(1),
    "TUPLE2": lambda m, _: m.tuple(2),
    "TUPLE3": lambda m, _: m.tuple(3),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.marked())),
    "EMPTY_LIST": lambda m, _: m.stack.append([]),
    "LIST": lambda m, _: m.stack.append(m.marked()),
    "APPEND": lambda m, _: m.extend([m.pop()]),
    "APPENDS": lambda m, _: m.extend(m.marked()),
    "EMPTY_SET": lambda m, _: m.stack.append([]),
    "ADDITEMS": lambda m, _: m.extend(m.marked()),
    "FROZENSET": lambda m, _: m.stack.append(m.marked()),
    "EMPTY_DICT": lambda m, _: m.stack.append({}),
    "DICT": lambda m, _: m.stack.append(_entries(m.marked())),
    "SETITEM": lambda m, _: m.put([m.pop(), m.pop()][::-1]),
    "SETITEMS": lambda m, _: m.put(m.marked()),
    "GLOBAL": lambda m, text: m.stack.append(_pair(text)),
    "STACK_GLOBAL": lambda m, _: m.name_on_stack(),
    "EXT1": lambda m, code: m.stack.append(Named("copyreg", str(code))),
    "EXT2": lambda m, code: m.stack.append(Named("copyreg", str(code))),
    "EXT4": lambda m, code: m.stack.append(Named("copyreg", str(code))),
    "REDUCE": lambda m, _: m.with_arguments(False),
    "NEWOBJ": lambda m, _: m.with_arguments(False),
    "NEWOBJ_EX": lambda m, _: m.with_arguments(True),
    "INST": _instance,
    "OBJ": lambda m, _: m.object(),
    "BUILD": lambda m, _: m.build(),
    "PERSID": lambda m, key: m.stack.append(Persistent(key)),
    "BINPERSID": lambda m, _: m.stack.append(Persistent(m.pop())),
    "GET": lambda m, index: m.recall(index),
    "BINGET": lambda m, index: m.recall(index),
    "LONG_BINGET": lambda m, index: m.recall(index),
    "PUT": lambda m, index: m.keep(index),
    "BINPUT": lambda m, index: m.keep(index),
    "LONG_BINPUT": lambda m, index: m.keep(index),
    "MEMOIZE": lambda m, _: m.keep(len(m.memo)),
}
