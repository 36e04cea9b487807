"""How many blocks fit into one batch: by the bytes that their tiles take."""

from __future__ import annotations

from phobos.runtime.reference.machine import Machine
from phobos.runtime.reference.numbers import DTYPES
from phobos.semantics import ir
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.walking import everything_in, statements_of

TEMPORARIES = 256 << 20  # bytes of tiles that a batch may hold at once
CACHED = 512 << 10  # bytes of the largest tile of a batch: what stays in a core's own cache is several times as fast


def batch_size(machine: Machine) -> int:
    """The number of blocks of a batch, at least 1."""
    largest, held = footprint(machine)
    return max(1, min(TEMPORARIES // (held + 4 * largest), max(CACHED // largest, 1)))


def footprint(machine: Machine) -> tuple[int, int]:
    """Bytes of the largest tile of one block, and of all its variables together; each at least 8."""
    largest = held = 8
    program = machine.program
    for variable in program.variables:
        if variable.kind != "view":
            held += _bytes(machine, variable.type)
    for statement in statements_of(program.body):
        for part in everything_in(statement):
            largest = max(largest, _bytes(machine, part.type))
    return largest, held


def _bytes(machine: Machine, type_: ir.Type) -> int:
    return DTYPES[type_.dtype].itemsize * cells(machine, type_) if isinstance(type_, ir.TileT) else 8


def cells(machine: Machine, type_: ir.Type) -> int:
    """Elements of a tile, at least 1; a length that depends on the block counts as the largest extent of any tensor."""
    count = 1
    for n in type_.shape if isinstance(type_, ir.TileT) else ():
        count *= max(n if isinstance(n, int) else _at(machine, n), 1)
    return count


def _at(machine: Machine, length: Poly) -> int:
    """A length at this launch; where it depends on the block, the largest extent of any tensor."""
    most = max((extent for buffer in machine.buffers.values() for extent in buffer.extents), default=1)
    total = 0
    for monomial, coefficient in length.terms.items():
        product = coefficient
        for atom in monomial:
            number = _atom(machine, atom)
            if number is None:
                return most
            product *= number
        total += product
    return min(max(total, 1), most)


def _atom(machine: Machine, atom: Atom) -> int | None:
    kind, *rest = atom
    name = rest[0] if rest else None
    if kind == "dim" and isinstance(name, str):
        return machine.dims.get(name)
    if kind == "param" and isinstance(name, str):
        held = machine.params.get(name)
        return int(held) if isinstance(held, int) else None
    if kind == "const" and isinstance(name, str):
        constant = machine.program.constants.get(name)
        return constant.value if constant is not None else None
    return None
