"""Attributes to constants, launch, promises and flags, with what is wrong in them."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from phobos.diagnostic import Edit, Fix, Related, Span
from phobos.language import search
from phobos.language.attributes import ATTRIBUTES, DEFAULT_THREADS, MOST_THREADS, REGISTERS, WARP
from phobos.language.near import nearest
from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.semantics.program import Launch, Promise
from phobos.syntax import tree

MOST_POINTS = 10_000


def constants_of(b: Build, attributes: Iterable[tree.Attribute]) -> None:
    """Bind the constants of every `@autotune`, then those of `@cluster` that no `@autotune` declares."""
    chosen = dict(b.settings.constants)
    attributes = tuple(attributes)
    for kind in ("autotune", "cluster"):
        for attribute in attributes:
            if attribute.name.text != kind:
                continue
            for argument in attribute.arguments:
                if not isinstance(argument, tree.SearchArg):
                    b.report(
                        "PH403",
                        f"`@{kind}` takes search lists",
                        argument,
                        "not `NAME in [values]`",
                        help=f"write {ATTRIBUTES[kind].signature}",
                    )
                    if b.lost is not None:  # the constant that was meant is not undefined as well
                        b.lost |= {n.text for n in _names_of(argument)}
                    continue
                _constant(b, kind, argument, chosen)
            if not attribute.arguments:
                b.report(
                    "PH403",
                    f"`@{kind}` declares nothing",
                    attribute,
                    "no `NAME in [values]` here",
                    help=f"write {ATTRIBUTES[kind].example}",
                )
    total = search.points({c.name: c.choices for c in b.constants.values() if c.choices})
    if total > MOST_POINTS:
        first = next(a for a in attributes if a.name.text in ("autotune", "cluster"))
        b.report(
            "PH403",
            f"the search space has {total:,} points",
            first.name,
            f"more than {MOST_POINTS:,}",
            severity="warning",
            notes=(
                "each list multiplies the space: "
                + " x ".join(f"{c.name} {len(c.choices)}" for c in b.constants.values()),
            ),
            help="list fewer values, or tune one name at a time",
        )


def _names_of(argument: tree.KeywordArg | tree.PlainArg) -> list[tree.Name]:
    """The names in what is no search list."""
    if isinstance(argument, tree.KeywordArg):
        return [argument.name]
    return [argument.value] if isinstance(argument, tree.PlainArg) and isinstance(argument.value, tree.Name) else []


def _constant(b: Build, kind: str, argument: tree.SearchArg, chosen: dict[str, int]) -> None:
    name = argument.name.text
    listed = tuple(v.value for v in argument.values)
    before = b.constants.get(name)
    if before is not None:
        if before.attribute == kind:
            b.report(
                "PH403",
                f"`{name}` is listed twice",
                argument.name,
                "listed again here",
                severity="warning",
                related=(Related(before.span, "first listed here"),),
                help="keep one of the two lists; the first one counts",
            )
        b.nodes.setdefault(argument.name, before)
        return
    if not listed:
        b.report(
            "PH403",
            f"`{name}` has no values",
            argument,
            "an empty list",
            help=f"give at least one value, as in `{name} in [64]`",
        )
    seen: set[int] = set()
    for item in argument.values:
        if item.value in seen:
            b.report(
                "PH403",
                f"{item.value} is listed twice for `{name}`",
                item,
                "a duplicate",
                severity="warning",
                help="remove it: every value would be tried once more for nothing",
            )
        seen.add(item.value)
    choices = search.choices(listed)
    value = chosen.get(name, choices[0] if choices else 1)
    constant = ir.Constant(name, choices, value, kind, b.span(argument.name))
    b.constants[name] = constant
    b.nodes[argument.name] = constant
    set_to = constant.span if value < 1 else None  # by the caller, where the list does not say so itself
    b.zeros[constant] = next((b.span(item) for item in argument.values if item.value == 0), set_to)


def launch_of(b: Build, attributes: Iterable[tree.Attribute]) -> Launch:
    """The first `@launch`, or the default; a wrong one is reported and counts as the default."""
    attribute = next((a for a in attributes if a.name.text == "launch"), None)
    if attribute is None:
        return Launch(DEFAULT_THREADS, None, None, None)
    span = b.span(attribute)
    entry = ATTRIBUTES["launch"]
    numbers: list[int] = []
    for argument in attribute.arguments:
        if not isinstance(argument, tree.PlainArg) or not isinstance(argument.value, tree.Int):
            b.report(
                "PH401", "`@launch` takes integers", argument, "not an integer literal", help=f"write {entry.signature}"
            )
            return Launch(DEFAULT_THREADS, None, None, span)
        numbers.append(argument.value.value)
    if not 1 <= len(numbers) <= 3:
        b.report(
            "PH401",
            f"`@launch` takes one to three integers, and {len(numbers)} stand here",
            attribute,
            f"{len(numbers)} arguments",
            help=f"write {entry.signature}",
        )
        return Launch(DEFAULT_THREADS, None, None, span)
    threads = numbers[0]
    if threads % WARP or not WARP <= threads <= MOST_THREADS:
        near = min(MOST_THREADS, max(WARP, (threads + WARP - 1) // WARP * WARP))
        b.report(
            "PH401",
            f"a block cannot have {threads} threads",
            attribute.arguments[0],
            f"not a multiple of {WARP} from {WARP} to {MOST_THREADS}",
            help=f"the nearest number above that works is {near}" if near > threads else f"at most {near} work",
        )
        threads = DEFAULT_THREADS
    min_blocks = numbers[1] if len(numbers) > 1 else None
    if min_blocks is not None and min_blocks < 1:
        b.report("PH401", "at least one block must fit a multiprocessor", attribute.arguments[1], "not positive")
        min_blocks = None
    registers = numbers[2] if len(numbers) > 2 else None
    if registers is not None and not REGISTERS[0] <= registers <= REGISTERS[1]:
        b.report(
            "PH401",
            f"a thread cannot be held to {registers} registers",
            attribute.arguments[2],
            f"not from {REGISTERS[0]} to {REGISTERS[1]}",
        )
        registers = None
    return Launch(threads, min_blocks, registers, span)


def flags_of(b: Build, attributes: Iterable[tree.Attribute]) -> dict[str, tree.Attribute]:
    """Every attribute by name (the first of a name), and what is unknown, repeated or wrongly written."""
    flags: dict[str, tree.Attribute] = {}
    for attribute in attributes:
        name = attribute.name.text
        if not name:
            continue
        entry = ATTRIBUTES.get(name)
        if entry is None:
            near = nearest(name, ATTRIBUTES)
            b.report(
                "PH406",
                f"unknown attribute `@{name}`",
                attribute.name,
                "it has no effect here",
                severity="warning",
                help=f"did you mean `@{near}`?"
                if near
                else "known ones are " + ", ".join(f"`@{known}`" for known in ATTRIBUTES),
                fix=_replace(b, attribute.name, near) if near else None,
            )
            flags.setdefault(name, attribute)
            continue
        if name in flags and not entry.repeatable and not (_keys(attribute) & _keys(flags[name])):
            b.report(
                "PH407",
                f"`@{name}` is written twice",
                attribute.name,
                "written again here",
                severity="warning",
                related=(Related(b.span(flags[name].name), "first written here"),),
                help="keep one of them",
            )
        flags.setdefault(name, attribute)
        if entry.form == "none" and attribute.arguments:
            _takes_nothing(b, attribute)
        elif entry.form == "option":
            _options(b, attribute, entry.options)
    return flags


def _keys(attribute: tree.Attribute) -> frozenset[str]:
    """The dimensions that an `@aligned` names. Where two name one, PH307 speaks."""
    if attribute.name.text != "aligned":
        return frozenset()
    return frozenset(a.name.text for a in attribute.arguments if isinstance(a, tree.KeywordArg))


def _takes_nothing(b: Build, attribute: tree.Attribute) -> None:
    name = attribute.name.text
    remove = Fix("remove the arguments", "safe", (Edit(b.place(attribute.name.end, attribute.end), ""),))
    inside = b.place(attribute.arguments[0].start, attribute.arguments[-1].end)
    if name == "persistent":
        b.report(
            "PH209",
            "`@persistent` takes no arguments",
            inside,
            "not the size of the grid",
            notes=("the launcher asks the compiled kernel how many blocks can be resident, and sizes the grid by it",),
            help="remove the arguments; `grid=` of the launch asks for a smaller grid",
            fix=remove,
        )
    else:
        b.report(
            "PH407",
            f"`@{name}` takes no arguments",
            inside,
            "ignored",
            severity="warning",
            help="remove the arguments",
            fix=remove,
        )


def _options(b: Build, attribute: tree.Attribute, options: tuple[str, ...]) -> None:
    given: list[str] = []
    for argument in attribute.arguments:
        value = argument.value if isinstance(argument, tree.PlainArg) else None
        text = value.text if isinstance(value, tree.Name) else None
        if text not in options:
            b.report(
                "PH407",
                f"`@{attribute.name.text}` does not know this option",
                argument,
                "ignored",
                severity="warning",
                help="write one of " + ", ".join(f"`{o}`" for o in options) + ", or nothing",
            )
        else:
            given.append(text)
    if len(set(given)) > 1:
        b.report(
            "PH407",
            f"`{given[0]}` and `{given[1]}` exclude each other",
            attribute.arguments[1],
            "the first one counts",
            severity="warning",
            help="keep one of them",
        )


def promises_of(b: Build, attributes: Iterable[tree.Attribute]) -> tuple[Promise, ...]:
    """Every well-formed `DIM = tile`, after all parameters are known."""
    promises: list[Promise] = []
    for attribute in attributes:
        if attribute.name.text != "aligned":
            continue
        if not attribute.arguments:
            b.report(
                "PH302",
                "`@aligned` promises nothing",
                attribute,
                "no `DIM = tile` here",
                help="name an extent and its tile, as in `@aligned(N = 64)`",
            )
        for argument in attribute.arguments:
            if not isinstance(argument, tree.KeywordArg):
                b.report(
                    "PH302",
                    "`@aligned` needs a name for each promise",
                    argument,
                    "no `DIM =` before it",
                    help="write `@aligned(DIM = tile)` with a dimension of a tensor parameter",
                )
                continue
            promise = _promise(b, attribute, argument)
            if promise is not None:
                _contradicts(b, promises, promise)
                promises.append(promise)
    return tuple(promises)


def _promise(b: Build, attribute: tree.Attribute, argument: tree.KeywordArg) -> Promise | None:
    name = argument.name.text
    extents = dimension_names(b)
    if name not in extents:
        near = nearest(name, extents)
        known = ", ".join(f"`{n}`" for n in extents)
        b.report(
            "PH301",
            f"`{name}` is not a dimension of any tensor",
            argument.name,
            "no tensor parameter has this extent",
            help=f"did you mean `{near}`?"
            if near
            else f"the extents are {known}"
            if known
            else "no tensor parameter has a named extent",
            fix=_replace(b, argument.name, near) if near else None,
        )
    else:
        b.nodes.setdefault(argument.name, extents[name])
    value = argument.value
    constant: ir.Constant | None = None
    tile = 0
    if isinstance(value, tree.Int):
        tile = value.value
    elif isinstance(value, tree.Name) and value.text in b.constants:
        constant = b.constants[value.text]
        b.used.add(constant)
        b.nodes.setdefault(value, constant)
        tile = constant.value
    else:
        text = value.text if isinstance(value, tree.Name) else ""
        near = nearest(text, b.constants) if text else None
        b.report(
            "PH302",
            f"the tile of `{name}` must be a positive integer or a constant",
            argument.name,
            "this promise",
            related=(Related(b.span(value), f"`{text}` is not an `@autotune` constant" if text else "not an integer"),),
            help=f"did you mean `{near}`?" if near else "write a literal, or a name that `@autotune` declares",
            fix=_replace(b, value, near) if near else None,
        )
        return None
    if tile < 1:
        b.report(
            "PH302",
            f"the tile of `{name}` must be positive",
            argument.name,
            "this promise",
            related=(Related(b.span(value), f"this is {tile}"),),
            help="promise 1 or more; every extent is a multiple of 1",
        )
        return None
    if name not in extents:
        return None
    return Promise(name, tile, constant, b.span(argument.name), b.span(value), b.span(attribute))


def dimension_names(b: Build) -> dict[str, ir.Dim | ir.Constant]:
    """Every name that stands as an extent of a tensor parameter."""
    found: dict[str, ir.Dim | ir.Constant] = {}
    for tensor in b.tensors.values():
        for extent in tensor.extents:
            if not isinstance(extent, int):
                found.setdefault(extent.name, extent)
    return found


def _contradicts(b: Build, before: list[Promise], promise: Promise) -> None:
    for other in before:
        if other.dim != promise.dim:
            continue
        both = other.tile * promise.tile // gcd(other.tile, promise.tile)
        beyond = both not in (other.tile, promise.tile)
        message = (
            f"two promises about `{promise.dim}` together mean a multiple of {both}"
            if beyond
            else f"`{promise.dim}` is promised twice"
        )
        b.report(
            "PH307",
            message,
            promise.key,
            f"a multiple of {promise.tile} here",
            severity="error" if beyond else "warning",
            related=(Related(other.key, f"a multiple of {other.tile} here"),),
            help=f"write the one promise that is meant: `@aligned({promise.dim} = {both})`",
        )
        return


def _replace(b: Build, node: tree.Node, text: str) -> Fix:
    return Fix(f"write `{text}`", "unsafe", (Edit(b.span(node), text),))


def zero_constant(b: Build, constant: ir.Constant, use: Span, role: str) -> None:
    """A constant that may be 0 is used where 0 makes no sense (PH403), or one set to less where that makes none."""
    place = b.zeros.get(constant)
    if place is not None and place is constant.span:
        if constant.value < 0 and role == "a divisor":
            return
        b.report(
            "PH403",
            f"`{constant.name}` is set to {constant.value}, and it is {role}",
            place,
            "this constant",
            related=(Related(use, f"used as {role.removeprefix('used as ')} here"),),
            help=f"set it to at least 1, as in {constant.name}={next((n for n in constant.choices if n > 0), 1)}",
        )
    elif place is not None:
        b.report(
            "PH403",
            f"`{constant.name}` may be 0, and it is {role}",
            place,
            "0 is listed here",
            related=(Related(use, f"used as {role.removeprefix('used as ')} here"),),
            help="remove 0 from the list",
        )
