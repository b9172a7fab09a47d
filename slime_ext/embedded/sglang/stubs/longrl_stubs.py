"""Placeholders for libraries that SGLang imports and a CPU server of a dense model never calls.

One design choice: whatever is asked for at import exists (a class, a module), and whatever would do
work raises an error that names the library, so a model that does need it fails loudly.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any


class AbsentError(RuntimeError):
    """Something of a library that is only a placeholder here was put to work."""


class _AbsentType(type):
    """Makes attributes of placeholder classes placeholders too."""

    def __getattr__(cls, name: str) -> Any:
        return placeholder(cls.__module__, name)


class Absent(metaclass=_AbsentType):
    """Base of all placeholders: may be named in annotations, subclassed and constructed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def __call__(self, *args: Any, **options: Any) -> Any:
        library = type(self).__module__.partition(".")[0]
        raise AbsentError(
            f"{type(self).__module__}.{type(self).__name__} was called, but {library} is a "
            "placeholder in this environment; this model or option needs SGLang on a GPU"
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name)


def placeholder(module: str, name: str) -> Any:
    """The placeholder class `name`. Raises AttributeError for names Python itself looks up, since
    a placeholder there (`__file__`, `__wrapped__`) would be taken for real."""
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return _AbsentType(name, (Absent,), {"__module__": module})


class _AbsentModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        return placeholder(self.__name__, name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds any module inside `package`."""

    def __init__(self, package: str) -> None:
        self._prefix = package + "."

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith(self._prefix):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _AbsentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """An empty module: everything in it is made when asked for."""


def answer_submodules(package: str) -> None:
    """From now on `import package.anything.at.all` succeeds."""
    sys.meta_path.insert(0, _Finder(package))
