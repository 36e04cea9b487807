"""How the project spells a value: a class of named fields that nobody changes.

`@value` is immutable to the type checker and cheap at run time. `dataclass(frozen=True)` would cost twice as much
to define and four times as much to construct, and even a plain `dataclass` costs ten times what is needed here to
define; `phobos check` pays for some two hundred of them on every start. Values compare and hash by identity, so a
fact can be keyed by the node it is about. `dataclasses.replace` and `dataclasses.fields` understand them.
"""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


class _Fields:
    """`__dataclass_fields__`, made when somebody first asks."""

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        made: dict[str, Any] | None = owner.__dict__.get("_value_fields")
        if made is None:
            from dataclasses import field, make_dataclass

            defaults: dict[str, object] = owner._value_defaults  # type: ignore[attr-defined]
            specs = [
                (name, kind, field(default=defaults[name])) if name in defaults else (name, kind)
                for name, kind in owner._value_types.items()  # type: ignore[attr-defined]
            ]
            made = dict(make_dataclass(owner.__name__, specs, eq=False).__dataclass_fields__)  # type: ignore[attr-defined]
            owner._value_fields = made  # type: ignore[attr-defined]
        return made


_FIELDS = _Fields()


def _repr(self: object) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self)._value_types)  # type: ignore[attr-defined]
    return f"{type(self).__qualname__}({shown})"


def _replace(self: T, /, **changes: object) -> T:
    return type(self)(**({name: getattr(self, name) for name in type(self)._value_types} | changes))  # type: ignore[attr-defined]


@dataclass_transform(frozen_default=True, eq_default=False)
def value(cls: type[T]) -> type[T]:
    """Make `cls` a value class: `__slots__`, `__init__` and `__repr__` from its annotations, as a dataclass has them.

    Defaults are plain values; there are no field functions, and no hooks after construction.
    """
    own: dict[str, object] = dict(cls.__annotations__)
    types: dict[str, object] = {}
    defaults: dict[str, object] = {}
    inherited: set[str] = set()
    for base in reversed(cls.__mro__[1:]):
        types.update(base.__dict__.get("_value_types", ()))
        defaults.update(base.__dict__.get("_value_defaults", ()))
        inherited.update(base.__dict__.get("__slots__", ()))
    namespace = dict(cls.__dict__)
    for name, kind in own.items():
        types[name] = kind
        if name in namespace:
            defaults[name] = namespace.pop(name)
        else:
            defaults.pop(name, None)
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace["__slots__"] = tuple(name for name in own if name not in inherited)
    namespace["__match_args__"] = tuple(types)
    namespace["_value_types"] = types
    namespace["_value_defaults"] = defaults
    namespace["__dataclass_fields__"] = _FIELDS
    namespace.setdefault("__init__", _constructor(cls, tuple(types), defaults))
    namespace.setdefault("__repr__", _repr)
    namespace.setdefault("__replace__", _replace)
    namespace["__qualname__"] = cls.__qualname__
    made: type[T] = type(cls)(cls.__name__, cls.__bases__, namespace)  # type: ignore[misc]
    return made


_TEMPLATES: dict[int, CodeType] = {}


def _template(count: int) -> CodeType:
    """The code of an `__init__` that stores so many parameters; only the names differ from class to class."""
    known = _TEMPLATES.get(count)
    if known is None:
        names = [f"field{n}" for n in range(count)]
        made: dict[str, Any] = {}
        body = "".join(f" self.{name}={name}\n" for name in names) or " pass\n"
        exec(f"def __init__(self,{','.join(names)}):\n{body}", {}, made)
        known = _TEMPLATES[count] = made["__init__"].__code__
    return known


def _constructor(cls: type, names: tuple[str, ...], defaults: dict[str, object]) -> Any:
    given = [name for name in names if name in defaults]
    if given and names[-len(given) :] != tuple(given):
        name = next(name for name in reversed(names) if name not in defaults)
        raise TypeError(f"field {name!r} of {cls.__qualname__} without a default follows one with a default")
    qualname = f"{cls.__qualname__}.__init__"
    code = _template(len(names)).replace(co_varnames=("self", *names), co_names=names, co_qualname=qualname)
    init = FunctionType(code, globals(), "__init__", tuple([defaults[name] for name in given]))
    init.__module__ = cls.__module__
    return init


def replace(of: T, /, **changes: object) -> T:
    """Another value, with some fields changed. What `dataclasses.replace` does, without the import of that module."""
    made: T = of.__replace__(**changes)  # type: ignore[attr-defined]
    return made
