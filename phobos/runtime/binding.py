"""Arguments to parameters: which array is which tensor, what the symbols are, and whether all that agrees.

Nothing is launched and no device asked. Every refusal names the argument, the line of the kernel and the way out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from phobos.diagnostic import Span
from phobos.errors import LaunchError
from phobos.runtime.arrays import Given, describe, is_array, read, said_by
from phobos.runtime.faults import refusal
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import replace, value

if TYPE_CHECKING:
    from phobos.semantics.module import Module, Unit

_FLOATS = ("f16", "bf16", "f32", "f64")
_RANGES = {"i8": 8, "u8": 8, "i32": 32, "i64": 64, "index": 64}


@value
class Bound:
    """Arguments that fit. `supplied` are the barrier tensors that were left out, with the shape they need.

    `sizes` holds every number known by name: extents, integer parameters, constants.
    """

    module: Module
    unit: Unit
    program: Program
    tensors: dict[str, Given]
    params: dict[str, Any]
    dims: dict[str, int]
    supplied: dict[str, tuple[int, ...]]
    device: str  # "cpu" or "cuda:N"

    @property
    def sizes(self) -> dict[str, int]:
        known = {name: constant.value for name, constant in self.program.constants.items()}
        known.update((name, held) for name, held in self.params.items() if isinstance(held, int))
        known.update(self.dims)
        return known

    @property
    def without_arrays(self) -> Bound:
        """The same, holding nobody's array: to speak of a launch when its arrays may be gone."""
        if all(held.array is None for held in self.tensors.values()):
            return self
        bare = {name: replace(held, array=None, shown=None) for name, held in self.tensors.items()}
        return replace(self, tensors=bare)

    def line(self, span: Span) -> int:
        """The line of the file, from 1, of a span of the program."""
        return self.module.line(self.unit, span)


def barrier_tensors(program: Program) -> frozenset[str]:
    """Names of the tensors by which a kernel's blocks wait for each other."""
    from phobos.semantics.values import statements_of

    return frozenset(s.tensor.name for s in statements_of(program.body) if isinstance(s, ir.Barrier))


def bind(module: Module, unit: Unit, program: Program, positional: Sequence[Any], named: Mapping[str, Any]) -> Bound:
    """Arguments, by position or name, to the kernel's parameters. Raises LaunchError."""
    barriers = barrier_tensors(program)
    arguments = _match(module, unit, program, positional, named, barriers)
    tensors: dict[str, Given] = {}
    params: dict[str, Any] = {}
    for parameter in program.parameters:
        if parameter.name not in arguments:
            continue
        given = arguments[parameter.name]
        if isinstance(parameter, ir.Tensor):
            tensors[parameter.name] = _tensor(module, unit, parameter, given, parameter.name in barriers)
        else:
            params[parameter.name] = _scalar(module, unit, parameter, given)
    dims = _extents(module, unit, program, tensors, barriers)
    supplied: dict[str, tuple[int, ...]] = {}
    for name in barriers - set(tensors):
        supplied[name] = tuple(
            _known_extent(extent, dims, 2 if axis == 0 else 1)
            for axis, extent in enumerate(program.tensors[name].extents)
        )
        for extent, number in zip(program.tensors[name].extents, supplied[name]):
            if isinstance(extent, ir.Dim):
                dims.setdefault(extent.name, number)
    _same_named(module, unit, program, dims, params)
    return Bound(module, unit, program, tensors, params, dims, supplied, _device(module, unit, program, tensors))


def parameters_of(bound: Bound, positional: int, named: Sequence[str]) -> list[tuple[int, str]]:
    """For so many arguments by position, and then those by name: the place of each, and the parameter it is for."""
    places = dict(zip(named, range(positional, positional + len(named))))
    barriers = barrier_tensors(bound.program)
    matched = _match(bound.module, bound.unit, bound.program, range(positional), places, barriers)
    return sorted((at, name) for name, at in matched.items())


def _match(
    module: Module, unit: Unit, program: Program, positional: Sequence[Any], named: Mapping[str, Any],
    barriers: frozenset[str],
) -> dict[str, Any]:  # fmt: skip
    names = [parameter.name for parameter in program.parameters]
    shown = f"{program.name}({', '.join(names)})"
    slots = [name for name in names if name not in named]
    if len(positional) != len(slots):
        needed = [name for name in slots if name not in barriers]
        if len(positional) <= len(needed):
            slots = needed
    if len(positional) > len(slots):
        besides = ", ".join(f"`{name}`" for name in names if name in named)
        said = f"{len(positional)} arguments given by position, but {shown} takes {len(slots)}"
        raise refusal(
            module, unit, None, f"{said} besides {besides}, given by name" if besides else said, None,
            help="options, such as `grid`, are given by name",
        )  # fmt: skip
    arguments = dict(zip(slots, positional))
    for name, given in named.items():
        if name not in names:
            from phobos.language.near import nearest
            from phobos.runtime.options import LaunchOptions

            near = nearest(name, (*names, *LaunchOptions.__annotations__))
            raise refusal(
                module, unit, None, f"{shown} has no parameter `{name}`", None,
                help=f"did you mean `{near}`?" if near else "options are `grid`, `stream` and the like",
            )  # fmt: skip
        arguments[name] = given
    missing = [name for name in names if name not in arguments and name not in barriers]
    if missing:
        from phobos.runtime.options import LaunchOptions

        parameter = next(p for p in program.parameters if p.name == missing[0])
        hidden = next((name for name in missing if name in LaunchOptions.__annotations__), None)
        listed = ", ".join(f"`{name}`" for name in missing)
        raise refusal(
            module, unit, None, f"{shown} needs {listed}", parameter.span, label="no argument was given for this",
            help=f"`{hidden}=` is an option of the launch: give the parameter by position" if hidden else None,
        )  # fmt: skip
    return {name: given for name, given in arguments.items() if not (name in barriers and given is None)}


def _tensor(module: Module, unit: Unit, tensor: ir.Tensor, given: Any, is_barrier: bool) -> Given:
    try:
        held = describe(tensor.name, given)
    except LaunchError as error:
        raise refusal(module, unit, error.kind, str(error), tensor.span) from None
    kind = "bad-barrier-tensor" if is_barrier else None
    declared = f"tensor<{tensor.dtype}>[{', '.join(_spelled(e) for e in tensor.extents)}]"
    if held.dtype != tensor.dtype:
        raise refusal(
            module, unit, kind, f"argument `{tensor.name}` holds {held.dtype}, the kernel declares {declared}",
            tensor.span, help=f"convert the array to {tensor.dtype} first",
        )  # fmt: skip
    if len(held.shape) != len(tensor.extents):
        raise refusal(
            module, unit, kind, f"argument `{tensor.name}` has shape {_shape(held.shape)}, the kernel declares "
            f"{declared}", tensor.span, help=f"pass an array of rank {len(tensor.extents)}",
        )  # fmt: skip
    if not held.is_plain:
        raise refusal(
            module, unit, kind, f"argument `{tensor.name}` is not row-major: shape {_shape(held.shape)}, strides "
            f"{_shape(held.strides)} bytes", tensor.span,
            help="pass a C-contiguous array (the rows of a matrix may be apart)",
        )  # fmt: skip
    return held


def _scalar(module: Module, unit: Unit, parameter: ir.ScalarParam, given: Any) -> Any:
    if is_array(given) and getattr(given, "ndim", 0) != 0:
        raise refusal(
            module, unit, None, f"argument `{parameter.name}` is an array, the kernel declares {parameter.dtype}",
            parameter.span, help="pass a number",
        )  # fmt: skip
    dtype = parameter.dtype

    def wrong() -> LaunchError:
        said = f"argument `{parameter.name}` is {_shown(given)}, the kernel declares {dtype}"
        kind = "a number" if dtype in _FLOATS else "True or False" if dtype == "bool" else "a whole number"
        return refusal(module, unit, None, said, parameter.span, help=f"pass {kind}")

    try:
        number = read(given)
    except Exception as error:  # an array without data, or one whose data cannot be waited for: its library knows
        said = f"argument `{parameter.name}` cannot be read as a number: {said_by(error)}"
        raise refusal(module, unit, None, said, parameter.span, help="pass a number of the host") from None
    if dtype == "bool":
        if not isinstance(number, bool) and number not in (0, 1):
            raise wrong()
        return bool(number)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise wrong()
    if dtype in _FLOATS:
        try:
            return float(number)
        except OverflowError:
            raise wrong() from None
    if isinstance(number, float):
        if not number.is_integer():
            raise wrong()
        number = int(number)
    bits = _RANGES[dtype]
    low, high = (0, (1 << bits) - 1) if dtype == "u8" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    if not low <= number <= high:
        raise refusal(
            module, unit, None, f"argument `{parameter.name}` is {_shown(number)}, which {dtype} cannot hold",
            parameter.span, help=f"it holds {low} to {high}",
        )  # fmt: skip
    return number


def _shown(given: object) -> str:
    """A value in a message: a number of thousands of digits is cut, and one that Python refuses to print is named."""
    from reprlib import Repr

    short = Repr()
    short.maxlong = short.maxother = short.maxstring = 60
    try:
        return short.repr(given)
    except Exception:
        return f"of type {type(given).__name__}"


def _extents(
    module: Module, unit: Unit, program: Program, tensors: Mapping[str, Given], barriers: frozenset[str]
) -> dict[str, int]:
    dims: dict[str, int] = {}
    origin: dict[str, tuple[str, int]] = {}
    for tensor in program.tensors.values():
        held = tensors.get(tensor.name)
        if held is None:
            continue
        kind = "bad-barrier-tensor" if tensor.name in barriers else None
        for axis, (extent, number) in enumerate(zip(tensor.extents, held.shape)):
            if isinstance(extent, ir.Dim):
                known = dims.setdefault(extent.name, number)
                origin.setdefault(extent.name, (tensor.name, axis))
                if known != number:
                    first, first_axis = origin[extent.name]
                    raise refusal(
                        module, unit, None, f"`{extent.name}` is {known} by axis {first_axis} of `{first}`, "
                        f"but axis {axis} "
                        f"of `{tensor.name}` is {number}", tensor.span,
                        help="arrays that share a symbol must agree on that extent",
                    )  # fmt: skip
                continue
            wanted = extent if isinstance(extent, int) else extent.value
            if wanted != number:
                named = "" if isinstance(extent, int) else f"`{extent.name}` = "
                way = (
                    None
                    if isinstance(extent, int)
                    else (f"pass an array of that extent, or set the constant: constants={{{extent.name!r}: {number}}}")
                )
                raise refusal(
                    module, unit, kind, f"axis {axis} of argument `{tensor.name}` is {number}, the kernel declares "
                    f"{named}{wanted}", tensor.span, help=way,
                )  # fmt: skip
    return dims


def _same_named(module: Module, unit: Unit, program: Program, dims: dict[str, int], params: dict[str, Any]) -> None:
    for parameter in program.params.values():
        if parameter.name in dims and params.get(parameter.name) != dims[parameter.name]:
            raise refusal(
                module, unit, None, f"parameter `{parameter.name}` is {params.get(parameter.name)}, "
                f"but the extent of that name "
                f"is {dims[parameter.name]}", parameter.span,
                help="a scalar parameter that is named like an extent must be passed equal to it",
            )  # fmt: skip


def _known_extent(extent: int | ir.Dim | ir.Constant, dims: Mapping[str, int], otherwise: int) -> int:
    if isinstance(extent, ir.Dim):
        return dims.get(extent.name, otherwise)
    return extent if isinstance(extent, int) else extent.value


def _device(module: Module, unit: Unit, program: Program, tensors: Mapping[str, Given]) -> str:
    devices = {name: held.device for name, held in tensors.items()}
    most = max(devices.values(), key=list(devices.values()).count, default="cpu")
    for name, device in devices.items():
        if device != most:
            others = ", ".join(f"`{other}` is on {where}" for other, where in devices.items() if where != device)
            raise refusal(
                module, unit, None,
                f"the arguments are on different devices: `{name}` is on {device}, {others}",
                program.tensors[name].span, help="bring them to one device first",
            )  # fmt: skip
    return most


def _spelled(extent: int | ir.Dim | ir.Constant) -> str:
    return str(extent) if isinstance(extent, int) else extent.name


def _shape(numbers: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, numbers)) + ("," if len(numbers) == 1 else "") + ")"
