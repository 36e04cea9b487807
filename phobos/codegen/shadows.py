"""What finds races on the card: every access marks a shadow of its cell, and looks at the marks of other blocks.

Each cell of a tensor that the launch stores to has four words: who touched it in this phase (the first block that
stored and the first that loaded, with their places, and whether there was another of either), the first value stored,
and the second block that stored or loaded. A block that finds a conflict writes it down and asks the grid to leave.
How that is kept consistent, and that no other state is needed, is told in `device/shadows.py` beside the functions.

Marks are made where a statement stands, by all threads over the cells it names, whichever way its data travels: only
the phase of an access counts, not its moment. Only the value of a store has to be taken where it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from phobos.codegen import spelling
from phobos.codegen.context import Context, View
from phobos.codegen.emitted import Argument
from phobos.codegen.expressions import access_dtype, as_type, scalar
from phobos.codegen.instrument import Entry, Instrument
from phobos.codegen.leaves import Cells, view_of
from phobos.codegen.writer import Writer
from phobos.lowering import walk
from phobos.semantics import ir
from phobos.semantics.program import Program

HEAD = "races_head"
WHO = "state.block, state.generation"


def shadowed(programs: Sequence[Program]) -> frozenset[str]:
    """The tensors of a launch that can race: those that some plain store of it reaches."""
    return frozenset(
        statement.access.base.name
        for program in programs
        for statement in walk.statements(program.body)
        if isinstance(statement, ir.Store) and isinstance(statement.access.base, ir.Tensor)
    )


def has_atomics(programs: Sequence[Program]) -> bool:
    return any(isinstance(s, ir.Atomic) for program in programs for s in walk.statements(program.body))


class Shadows(Instrument):
    """Marks every access of the launch to a tensor that can race."""

    stops = True

    def __init__(self, programs: Sequence[Program]) -> None:
        self.names = shadowed(programs)
        self._shadows: dict[ir.Tensor, tuple[str, str]] = {}  # the words of a tensor, and how many cells it has
        self._sites: dict[tuple[object, ...], int] = {}

    def arguments(self) -> list[Entry]:
        return [(Argument("races", "", "ph_races*"), HEAD)]

    def given(self, context: Context) -> list[Entry]:
        found: list[Entry] = []
        for tensor in context.program.tensors.values():
            if tensor.name in self.names:
                words, cells = self._of(context, tensor)
                found.append((Argument("shadow", tensor.name, "unsigned long long*"), words))
                found.append((Argument("cells", tensor.name, "long long"), cells))
        return found

    def parameters(self) -> list[tuple[str, str]]:
        return [(f"ph_races* const {HEAD}", HEAD)]

    def _of(self, context: Context, tensor: ir.Tensor) -> tuple[str, str]:
        if tensor not in self._shadows:
            fresh = context.names.fresh
            self._shadows[tensor] = fresh(tensor.name + "_shadow"), fresh(tensor.name + "_cells")
        return self._shadows[tensor]

    def _site(self, context: Context, what: str, node: ir.Access | ir.Statement | ir.Expression, name: str) -> int:
        key = (context.root, what, node.span, node.calls, name)
        if key not in self._sites:
            self._sites[key] = context.site(what, node.span, node.calls, name)
        return self._sites[key]

    @contextmanager
    def barrier(self, out: Writer, site: int, word: str, leave: str) -> Iterator[None]:
        yield
        with out.block(f"if (state.generation % {HEAD}->limit == 0)"):
            out.line(f"ph_forget({HEAD});  // the numbers of phases begin anew")
            out.line(f"if (ph_grid_barrier(state, {word}, {site})) {leave}")
            out.line("--state.generation;")

    # --- loads ------------------------------------------------------------------------------------------

    def before(self, context: Context, statement: ir.Statement) -> None:
        if isinstance(statement, (ir.While, ir.AssumeUniform)):
            return
        if isinstance(statement, ir.Store) and statement.op is not None:
            self._seen(context, statement.access, None)
        self.reads(context, walk.expressions(statement))

    def reads(self, context: Context, roots: Sequence[ir.Expression]) -> None:
        done: set[object] = set()
        for root in roots:
            self._within(context, root, "", done)

    def _within(self, context: Context, expression: ir.Expression, condition: str, done: set[object]) -> None:
        match expression:
            case ir.ShortCircuit(op=op, left=left, right=right):
                self._within(context, left, condition, done)
                decided = scalar(context, left) if op == "&&" else f"!{scalar(context, left)}"
                self._within(context, right, f"{condition} && {decided}" if condition else decided, done)
                return
            case ir.Load(access=access) if access not in done:
                done.add(access)
                self._seen(context, access, None, condition)
            case ir.VariableRef(variable=variable) if variable in context.views and variable not in done:
                done.add(variable)
                view = context.views[variable]
                self._seen(context, view.access, view)
        for operand in walk.operands(expression):
            self._within(context, operand, condition, done)

    def _seen(self, context: Context, access: ir.Access, view: View | None, condition: str = "") -> None:
        """Mark the cells of an access as loaded."""
        tensor, out = access.base, context.out
        if not isinstance(tensor, ir.Tensor) or tensor.name not in self.names:
            return
        site = self._site(context, "load", access, tensor.name)
        if access.is_point:
            inside = self._inside_point(context, access)
            guard = " && ".join(filter(None, ("tid == 0", condition, inside)))
            out.line(f"if ({guard}) {self._load(context, tensor, self._offset(context, access), site)};")
            return
        with out.block(f"if ({condition})" if condition else ""):
            prefix = context.names.fresh(tensor.name)
            view = view or view_of(context, access, prefix)
            cells = Cells(context, view, prefix)
            static = all(isinstance(n, int) for n in cells.shape)
            number = "int" if static else "long long"
            total = " * ".join(view.lengths)
            with out.block(f"for ({number} n = tid; n < {total}; n += {context.program.launch.threads})"):
                at: list[str] = []
                rest = "n"
                for axis in range(len(view.lengths) - 1, -1, -1):
                    length = view.lengths[axis]
                    if length == "1":
                        at.insert(0, "0")
                        continue
                    own = f"n{axis}"
                    last = axis == 0 or all(n == "1" for n in view.lengths[:axis])
                    out.line(f"const {number} {own} = {rest if last else f'{rest} % {length}'};")
                    rest = f"({rest} / {length})"
                    at.insert(0, own)
                inside = cells.inside(tuple(at), range(len(at)))
                guard = f"if ({inside}) " if inside else ""
                out.line(f"{guard}{self._load(context, tensor, cells.offset(tuple(at)), site)};")

    def _load(self, context: Context, tensor: ir.Tensor, offset: str, site: int, back: int = 0) -> str:
        words, cells = self._of(context, tensor)
        return f"ph_load_seen({HEAD}, {words}, {cells}, {offset}, {site}, {WHO}, {back})"

    def _inside_point(self, context: Context, access: ir.Access) -> str:
        """A point outside its tensor has no shadow."""
        parts = []
        for sub, extent in zip(access.subs, context.extents(access.base), strict=True):
            assert isinstance(sub, ir.PointSub)
            parts.append(f"ph_inside({as_type(context, sub.index, 'index')}, {extent})")
        return " && ".join(parts)

    def _offset(self, context: Context, access: ir.Access) -> str:
        parts = []
        for sub, stride in zip(access.subs, context.strides(access.base), strict=True):
            assert isinstance(sub, ir.PointSub)
            at = as_type(context, sub.index, "index")
            parts.append(at if stride == "1" else f"{at} * {stride}")
        return " + ".join(parts)

    def gathered(self, context: Context, call: ir.BuiltinCall, tensor: ir.Tensor, cell: str) -> str:
        """The index of an element that a table is read at, marked on the way."""
        if tensor.name not in self.names:
            return cell
        words, cells = self._of(context, tensor)
        site = self._site(context, "load", call, tensor.name)
        extent = context.extents(tensor)[-1]
        return f"ph_gather_seen({HEAD}, {words}, {cells}, {cell}, {extent}, {site}, {WHO})"

    # --- stores -----------------------------------------------------------------------------------------

    def stored(self, cells: Cells, given: Sequence[str], at: tuple[str, ...]) -> None:
        """Before a vector of cells is stored."""
        context, tensor = cells.context, cells.access.base
        if not isinstance(tensor, ir.Tensor) or tensor.name not in self.names:
            return
        out = context.out
        site = self._site(context, "store", cells.access, tensor.name)
        for v, cell in enumerate(given):
            here = at if v == 0 else (*at[:-1], f"{at[-1]} + {v}" if at[-1] != "0" else str(v))
            inside = cells.inside(here, range(len(here)))
            guard = f"if ({inside}) " if inside else ""
            out.line(f"{guard}{self._store(context, tensor, cells.offset(here), site, cell, cells.dtype)};")

    def stored_point(self, context: Context, access: ir.Access, cell: str) -> None:
        """Before a point is stored; `cell` is what will be in it."""
        tensor = access.base
        if not isinstance(tensor, ir.Tensor) or tensor.name not in self.names:
            return
        site = self._site(context, "store", access, tensor.name)
        text = self._store(context, tensor, self._offset(context, access), site, cell, access_dtype(access))
        context.out.line(f"if (tid == 0 && {self._inside_point(context, access)}) {text};")

    def _store(self, context: Context, tensor: ir.Tensor, offset: str, site: int, cell: str, dtype: str) -> str:
        words, cells = self._of(context, tensor)
        bits = f"ph_bits_of(({spelling.CELLS[dtype]})({cell}))"
        return f"ph_store_seen({HEAD}, {words}, {cells}, {offset}, {site}, {bits}, {WHO})"

    # --- atomics ----------------------------------------------------------------------------------------

    @contextmanager
    def atomic(self, context: Context, statement: ir.Atomic, access: ir.Access) -> Iterator[None]:
        """That this block does an atomic is known before it does; its mark comes after, as what it has seen does."""
        out, tensor = context.out, statement.tensor
        out.line(f"if (tid == 0) ph_atomic_noted({HEAD}, {WHO});")
        yield
        if tensor.name in self.names:
            site = self._site(context, "atomic", statement, tensor.name)
            guard = f"tid == 0 && {self._inside_point(context, access)}"
            out.line(f"if ({guard}) {self._load(context, tensor, self._offset(context, access), site, 1)};")


__all__ = ["Shadows", "has_atomics", "shadowed"]
