"""Pickles read as data: every class or function in one becomes an inert record.

One design choice: nothing is imported, not even torch. A pickle can name any function to call; here
the call is written down (`args`) and not made. That lets a file with the arguments of a Megatron
that is not installed be read, and one that was made to run something do nothing.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

_DAMAGE = (
    *(pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, LookupError),
    *(ArithmeticError, MemoryError, RuntimeError),
)
"""What unpickling cut or altered bytes can raise."""
_PLAIN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
}
"""Containers of Python's own, which hold values and run nothing."""
_PYTHON_2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}
"""Names under which pickles of protocol 0 to 2, torch.save's among them, know two modules."""


class BrokenPickleError(ValueError):
    """Bytes that are no pickle, cut off or altered."""


class Record:
    """Stands for one object of a pickle. Attributes are those the pickle gave it; an enum member,
    a dtype's wrapper or a path has its values in `args`."""

    path = ""
    """`module.name` of the class or function in the pickle."""

    def __new__(cls, *args: Any, **_: Any) -> Record:
        made = super().__new__(cls)
        made.args = args
        made.items = []
        return made

    def __init__(self, *_: Any, **__: Any) -> None:
        self.args: tuple[Any, ...]
        self.items: list[Any]
        """Elements of an object that is a list or a mapping (as pairs)."""

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            if isinstance(part, dict):
                vars(self).update({str(key): value for key, value in part.items()})
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items.append((key, value))

    def append(self, value: Any) -> None:
        """Called for each element of a pickled list of an own class."""
        self.items.append(value)

    def extend(self, values: list[Any]) -> None:
        """The same for several elements."""
        self.items.extend(values)

    def __reduce__(self) -> Any:
        raise pickle.PicklingError(f"a record of {self.path} cannot be pickled again")

    def add(self, value: Any) -> None:
        """Called for each element of a pickled set of an own class."""
        self.items.append(value)


def read_pickle(data: bytes, reader: type[Records] | None = None) -> Any:
    """The object pickled in `data`, its classes replaced by records (or as `reader` says).

    Raises BrokenPickleError for bytes that are no whole pickle.
    """
    try:
        return (reader or Records)(io.BytesIO(data)).load()
    except _DAMAGE as error:
        raise BrokenPickleError(f"cut off or damaged ({error})") from None


def read_torch_file(path: Path) -> Any:
    """The object in a file that `torch.save` wrote, tensors as records without values.

    Raises BrokenPickleError for a file of another kind, OSError where it cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return read_pickle(member(archive, "data.pkl"))
    except (zipfile.BadZipFile, KeyError, NotImplementedError, EOFError) as error:
        raise BrokenPickleError(f"not a whole file of torch.save ({error})") from None


def member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of FOLDER/`name` in an archive of torch.save. Raises KeyError without it."""
    found = [info for info in archive.infolist() if info.filename.partition("/")[2] == name]
    if not found:
        raise KeyError(name)
    return archive.read(found[0])


def global_path(value: Any) -> str:
    """`module.name` of a class or function that the pickle mentions, or "" for another value."""
    return value.path if isinstance(value, type) and issubclass(value, Record) else ""


class Records(pickle.Unpickler):
    """Unpickler that makes records."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._classes: dict[tuple[str, str], Any] = dict(_PLAIN)

    def find_class(self, module: str, name: str) -> Any:
        """A record class of its own for each name, so that enum members differ by `path`."""
        module = _PYTHON_2.get(module, module)
        if (module, name) == ("copyreg", "_reconstructor"):
            return _reconstruct
        if (module, name) not in self._classes:
            self._classes[module, name] = type(name, (Record,), {"path": f"{module}.{name}"})
        return self._classes[module, name]

    def persistent_load(self, pid: Any) -> Any:
        """A storage of a tensor: what the file says of it, `("storage", type, key, place, size)`"""
        return pid


def _reconstruct(cls: Any, *_: Any) -> Any:
    """What protocol 2 calls to make an object of `cls` before its state is set."""
    return cls.__new__(cls) if global_path(cls) else Record.__new__(Record, cls)
