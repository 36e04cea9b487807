"""Several kernels as one launch: what their parameters are together, and where a grid barrier stands between them.

Kernels that nothing orders share a phase and run side by side. Where the order of two matters, the later one stands
in a later phase, and a barrier before it; each kernel stands in the earliest phase that it can. Parameters of one name
are one argument, constants of one name one constant. `ordering` says whether order matters; where it cannot, the
author has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from phobos.diagnostic import Related, Span
from phobos.semantics import ir
from phobos.semantics.copying import Copier, copied, joined
from phobos.semantics.footprints import footprints_of
from phobos.semantics.grid import blocks_at, grid_of
from phobos.semantics.module import Module, Unit
from phobos.semantics.obligations import Obligation, obligations_of
from phobos.semantics.ordering import Relation, relation, why_free, why_wait
from phobos.semantics.orders import Order as Answer
from phobos.semantics.program import Launch, Problem, Program
from phobos.semantics.schedules import FLAT, INTERLEAVED, Form, Order
from phobos.semantics.values import statements_of
from phobos.semantics.waits import waits_of
from phobos.value import value


@value
class Barrier:
    """Why kernel `later` stands behind a barrier: `earlier`, of the phase before, must be done first."""

    earlier: int
    later: int
    relation: Relation


@value
class Together:
    """Why the kernel `second` need not wait for `first`, which stands before it in the call."""

    first: int
    second: int
    relation: Relation


@value
class Fusion:
    """`programs` are the kernels in the order of the call, `phases` their numbers. All places count in the file.

    `barriers` gives the reasons of each kernel that waits for the phase before its own, `together` the pairs between
    which no barrier stands in their order. `overlaps` are tensors that must lie apart, as no barrier orders them.
    """

    programs: tuple[Program, ...]
    phases: tuple[tuple[int, ...], ...]
    barriers: tuple[Barrier, ...]
    together: tuple[Together, ...]
    overlaps: tuple[Obligation, ...]

    @property
    def form(self) -> Form:
        """The form of the code by what the texts say: as many axes as a kernel reads, workers only where they meet."""
        orders = []
        for phase in self.phases:
            read = [[axis.read for axis in grid_of(self.programs[number]).axes] for number in phase]
            orders.append(tuple(Order(3 if axes[2] else 2 if axes[1] else 1, 1) for axes in read))
        return Form(INTERLEAVED if len(self.phases) > 1 else FLAT, tuple(orders))

    def reasons(self, phase: int, line_of: Callable[[Span], int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Why kernels of a phase wait for the one before, and why they need not wait for others, in sentences."""
        names = [program.name for program in self.programs]
        waits = [
            f"`{names[one.later]}` {why_wait(one.relation, names[one.earlier], line_of)}"
            for one in self.barriers if one.later in self.phases[phase]
        ]  # fmt: skip
        free = [
            f"`{names[one.second]}` need not wait for `{names[one.first]}`: {why_free(one.relation, line_of)}"
            for one in self.together if one.second in self.phases[phase]
        ]  # fmt: skip
        return tuple(waits), tuple(free)

    @property
    def members(self) -> tuple[tuple[Program, ...], ...]:
        """The programs of each phase."""
        return tuple(tuple(self.programs[number] for number in phase) for phase in self.phases)


class FusedProgram(Program):
    """All that the kernels of a fusion have, as one program: parameters, constants, promises, launch bounds.

    `body` holds one kernel after the other. What one kernel does is a fact of its own program, in `fusion`.
    """

    __slots__ = ("fusion",)
    fusion: Fusion


class NotFusible(Exception):
    """Kernels that cannot be one launch; `problems` say why, their places counting in the file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems[0].message)
        self.problems = tuple(problems)


def parts_of(program: Program) -> tuple[Program, ...]:
    """The kernels that a program is made of: itself, or those of a fusion."""
    return program.fusion.programs if isinstance(program, FusedProgram) else (program,)


def largest_phase_at(program: Program, sizes: Mapping[str, int]) -> int:
    """The blocks of the largest phase of an ordinary kernel, which is one, or of a fusion. Raises GridUnknown and
    GridDisagrees where the grid of a kernel does not follow from its text."""
    phases = program.fusion.members if isinstance(program, FusedProgram) else ((program,),)
    return max(sum(prod(blocks_at(part, sizes)) for part in phase) for phase in phases)


def requirements_of(program: Program) -> tuple[Obligation, ...]:
    """The obligations of all its kernels, and what running them in one launch adds."""
    found = [obligation for part in parts_of(program) for obligation in obligations_of(part)]
    return (*found, *program.fusion.overlaps) if isinstance(program, FusedProgram) else tuple(found)


def fused(module: Module, names: Sequence[str], order: Answer = "ask") -> Unit:
    """The kernels `names` of a file as one, called `a+b`. Raises NotFusible; KeyError for a name that is none."""
    units = tuple(module.kernels[name] for name in names)
    programs = tuple(unit.program for unit in units)
    key = (tuple(map(id, programs)), module.path, module.file.text, order)
    known = _kept.get(key)
    if known is None:
        known = _kept[key] = programs, _made(module, units, order)
        while len(_kept) > MOST_KEPT:
            del _kept[next(iter(_kept))]
    unit = units[0]
    return Unit(unit.offset, unit.item, known[1], known[1].problems)


MOST_KEPT = 32  # fusions; the oldest go first
_kept: dict[tuple[object, ...], tuple[tuple[Program, ...], FusedProgram]] = {}  # programs live as long as their ids


@value
class _Part:
    """A kernel with its places counting in the file, and where its attributes stand."""

    program: Program
    attributes: dict[str, Span]


def _made(module: Module, units: Sequence[Unit], order: Answer) -> FusedProgram:
    parts = tuple(_placed(module, units))
    problems = [*_unfit(parts), *_launches(parts), *_clashes(parts)]
    if problems:
        raise NotFusible(problems)
    programs = tuple(part.program for part in parts)
    fusion = _arranged(parts, order)
    bodies: list[ir.Statement] = []
    for part in parts:
        body = Copier(_same, leaves=True).block(part.program.body)
        bodies.append(ir.Inline(part.program.named, (), part.program.name, body, None))
    flags = {name: flag for program in programs for name, flag in program.flags.items() if name == "dynshared"}
    name = "+".join(program.name for program in programs)
    plain = joined(name, programs, ir.Block(tuple(bodies)), _launch(programs), flags)
    made = FusedProgram(**{slot: getattr(plain, slot) for slot in Program.__slots__ if not slot.startswith("_")})
    made.fusion = fusion
    return made


def _same(span: Span) -> Span:
    return span


def _placed(module: Module, units: Sequence[Unit]) -> Iterator[_Part]:
    """Each kernel anew. A parameter, extent or constant that several have is one object in all of them."""
    known: dict[tuple[type, str], object] = {}
    for unit in units:
        program = unit.program

        def place(span: Span, unit: Unit = unit) -> Span:
            return module.absolute(unit, span)

        copier = Copier(place)
        named = (*program.constants.values(), *program.dims.values(), *program.parameters)
        for one in named:
            before = known.get((type(one), one.name))
            if before is not None and _clash(before, one) is None:
                copier.stands_for(one, before)
        made = copied(program, copier)
        for one in named:
            known.setdefault((type(one), one.name), copier.node(one))
        attributes = {name: place(Span(None, flag.start, flag.end)) for name, flag in program.flags.items()}
        yield _Part(made, attributes)


# --- what stands against it ---------------------------------------------------------------------------------


def _unfit(parts: Sequence[_Part]) -> Iterator[Problem]:
    """Kernels that share nothing with others: those whose blocks know the grid, or wait for each other."""
    for part in parts:
        name = part.program.name
        barrier = next((s for s in statements_of(part.program.body) if isinstance(s, ir.Barrier)), None)
        if part.program.is_persistent:
            related = () if barrier is None else (Related(barrier.span, "and its blocks meet here"),)
            yield Problem(
                "PH407", "error", f"`{name}` is `@persistent` and cannot be fused: it shares its work out itself",
                part.attributes["persistent"], "a fusion decides which block runs where", related,
                help=f"fuse a kernel that handles one tile a block, or launch `{name}` by itself",
            )  # fmt: skip
            continue
        if barrier is not None:
            yield Problem(
                "PH201", "error", f"`{name}` holds a `grid_barrier` and cannot be fused",
                barrier.span, "a fusion places its own barriers, between kernels",
                help="make the stretches between its barriers kernels of their own, and fuse those",
            )  # fmt: skip
        for wait in waits_of(part.program)[:1]:
            yield Problem(
                "PH508", "error", f"`{name}` waits for another block and cannot be fused",
                wait.span, f"waits here for another block to change `{wait.tensor.name}`",
                notes=("a worker of a fusion runs many blocks one after another, and may run that one later",),
                help=f"launch `{name}` by itself",
            )  # fmt: skip


def _launches(parts: Sequence[_Part]) -> Iterator[Problem]:
    first = parts[0]
    for part in parts[1:]:
        one, other = first.program.launch, part.program.launch
        if one.threads != other.threads:
            yield Problem(
                "PH401", "error",
                f"`{first.program.name}` runs on {one.threads} threads and `{part.program.name}` on {other.threads}: "
                "one launch has one number",
                other.span or part.program.named, _threads(other),
                (Related(one.span or first.program.named, _threads(one)),),
                help=f"write `@launch({one.threads})` on both, or another number",
            )  # fmt: skip


def _threads(launch: Launch) -> str:
    return f"{launch.threads} threads" if launch.span else f"{launch.threads} threads, as no `@launch` says otherwise"


def _launch(programs: Sequence[Program]) -> Launch:
    """The bounds of all: as many CTAs at once as any asks for, as few registers as any allows."""
    least = [p.launch.min_blocks for p in programs if p.launch.min_blocks is not None]
    most = [p.launch.max_registers for p in programs if p.launch.max_registers is not None]
    first = programs[0].launch
    return Launch(first.threads, max(least, default=None), min(most, default=None), first.span)


def _clashes(parts: Sequence[_Part]) -> Iterator[Problem]:
    """Names that are not one thing in all kernels."""
    first: dict[str, tuple[_Part, object]] = {}
    for part in parts:
        program = part.program
        own = {**program.dims, **{p.name: p for p in program.parameters}, **program.constants}
        for name, mine in own.items():
            if name not in first:
                first[name] = part, mine
                continue
            where, theirs = first[name]
            found = None if theirs is mine else _clash(theirs, mine)
            if found is not None:
                code, what, said, before = found
                yield Problem(
                    code, "error", f"`{name}` is not one {what} in `{where.program.name}` and `{program.name}`",
                    _span(mine), said, (Related(_span(theirs), before),),
                    help="in a fusion a name means one thing: rename one of them, or make them agree",
                )  # fmt: skip


def _clash(theirs: object, mine: object) -> tuple[str, str, str, str] | None:
    """Code, what it should be, and how the second and the first declare it; None where they agree."""
    match theirs, mine:
        case ir.Tensor(), ir.Tensor():
            said, before = _declared(mine), _declared(theirs)
            if theirs.dtype != mine.dtype:
                return "PH104", "tensor", said, before
            alike = len(theirs.extents) == len(mine.extents) and all(map(_one_extent, theirs.extents, mine.extents))
            return None if alike else ("PH105", "tensor", said, before)
        case ir.ScalarParam(), ir.ScalarParam():
            if theirs.dtype == mine.dtype:
                return None
            return "PH104", "parameter", f"{mine.dtype} here", f"{theirs.dtype} here"
        case ir.Constant(), ir.Constant():
            if theirs.choices == mine.choices and theirs.value == mine.value and theirs.attribute == mine.attribute:
                return None
            said, before = (f"one of {', '.join(map(str, c.choices))} here" for c in (mine, theirs))
            return "PH403", "constant", said, before
        case (ir.Dim(), ir.Dim()):
            return None
        case (ir.Dim(), ir.ScalarParam(dtype=dtype)) | (ir.ScalarParam(dtype=dtype), ir.Dim()):
            if dtype not in ("f16", "bf16", "f32", "f64", "bool"):
                return None  # passed equal to the extent, as in one kernel
    return "PH104", "thing", f"{_kind(mine)} here", f"{_kind(theirs)} here"


def _one_extent(a: int | ir.Dim | ir.Constant, b: int | ir.Dim | ir.Constant) -> bool:
    if isinstance(a, ir.Dim) or isinstance(b, ir.Dim):
        return isinstance(a, ir.Dim) and isinstance(b, ir.Dim) and a.name == b.name
    return (a if isinstance(a, int) else a.value) == (b if isinstance(b, int) else b.value)


def _declared(tensor: ir.Tensor) -> str:
    extents = ", ".join(str(e) if isinstance(e, int) else e.name for e in tensor.extents)
    return f"tensor<{tensor.dtype}>[{extents}] here"


def _kind(thing: object) -> str:
    match thing:
        case ir.Tensor():
            return "a tensor"
        case ir.ScalarParam(dtype=dtype):
            return f"a parameter of type {dtype}"
        case ir.Constant():
            return "a constant"
    return "an extent"


def _span(thing: object) -> Span:
    assert isinstance(thing, (ir.Tensor, ir.ScalarParam, ir.Constant, ir.Dim))
    return thing.span


# --- phases -------------------------------------------------------------------------------------------------


def _arranged(parts: Sequence[_Part], order: Answer) -> Fusion:
    """Each kernel in the first phase behind all that it must wait for. Raises NotFusible where nobody knows."""
    programs = tuple(part.program for part in parts)
    known: dict[tuple[int, int], Relation] = {}
    level: list[int] = []
    for later, program in enumerate(programs):
        for earlier in range(later):
            known[earlier, later] = relation(programs[earlier], program)
        behind = [level[earlier] + 1 for earlier in range(later) if _waits(known[earlier, later], order)]
        level.append(max(behind, default=0))
    asked = [
        _question(parts[earlier], parts[later], found)
        for (earlier, later), found in known.items()
        if found.verdict == "unknown" and order == "ask" and level[later] <= level[earlier]
    ]
    if asked:
        raise NotFusible(asked)
    phases = tuple(tuple(n for n, at in enumerate(level) if at == phase) for phase in range(max(level) + 1))
    barriers = tuple(
        Barrier(earlier, later, found)
        for (earlier, later), found in known.items()
        if level[later] == level[earlier] + 1 and _waits(found, order)
    )
    together = tuple(
        Together(earlier, later, found) for (earlier, later), found in known.items() if level[later] <= level[earlier]
    )
    overlaps = tuple(overlap for pair in together for overlap in _overlaps(programs[pair.first], programs[pair.second]))
    return Fusion(programs, phases, barriers, together, overlaps)


def _waits(found: Relation, order: Answer) -> bool:
    return found.verdict == "ordered" or (found.verdict == "unknown" and order == "barrier")


def _question(earlier: _Part, later: _Part, found: Relation) -> Problem:
    one, other = earlier.program.name, later.program.name
    assert found.first is not None and found.second is not None
    name = found.first.tensor
    return Problem(
        "PH506", "error",
        f"whether `{other}` must wait for `{one}` is not known: {found.reason}",
        found.second.span, f"`{other}` {found.second.does} `{name}` here",
        (Related(found.first.span, f"`{one}` {found.first.does} `{name}` here"),),
        help='say which: `order="barrier"` (`--order barrier`) puts a grid barrier between them and is always right, '
        f'`order="independent"` takes your word that no block of one meets a block of the other in a cell of `{name}`',
    )  # fmt: skip


def _overlaps(one: Program, other: Program) -> Iterator[Obligation]:
    """Tensors of two names that would need an order if they were one array."""
    writes, touches = _touched(one, stores=True), _touched(other, stores=False)
    also, those = _touched(other, stores=True), _touched(one, stores=False)
    seen: set[frozenset[str]] = set()
    for mine, theirs in (*((a, b) for a in writes for b in touches), *((b, a) for a in also for b in those)):
        pair = frozenset((mine.name, theirs.name))
        if len(pair) == 2 and pair not in seen:
            seen.add(pair)
            yield Obligation(
                "no-overlap", "launch", theirs.span, (),
                f"`{one.name}` uses `{mine.name}` and `{other.name}` uses `{theirs.name}` with no barrier between them",
                (mine, theirs), None,
            )  # fmt: skip


def _touched(program: Program, *, stores: bool) -> list[ir.Tensor]:
    found: dict[str, ir.Tensor] = {}
    for footprint in footprints_of(program):
        base = footprint.access.base
        if isinstance(base, ir.Tensor) and (footprint.kind != "load" or not stores):
            found.setdefault(base.name, base)
    return list(found.values())


__all__ = [
    "Barrier",
    "FusedProgram",
    "Fusion",
    "NotFusible",
    "Together",
    "fused",
    "parts_of",
    "requirements_of",
]
