"""Typed programs anew: the same statements at other places, over other parameters, for other blocks.

What is put together from several kernels has one tensor where they name one, and places that count in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.program import Launch, Problem, Program, Promise, Settings
from phobos.syntax import tree

Place = Callable[[Span], Span]


class Copier:
    """Copies nodes, each once: what was one object is one object again.

    `place` gives the new places. `axes` is added to the axis of every block index and grid extent, so that two
    kernels in one program have blocks of their own. `leaves`: what leaves the kernel leaves an `Inline` around its
    body instead.
    """

    def __init__(self, place: Place, *, axes: int = 0, leaves: bool = False) -> None:
        self.place = place
        self.axes = axes
        self.leaves = leaves
        self._made: dict[int, tuple[object, object]] = {}  # the old one too, so that its id stays its own

    def stands_for(self, old: object, new: object) -> None:
        """Every use of `old` becomes one of `new`."""
        self._made[id(old)] = old, new

    def node(self, old: object) -> object:
        """The copy of a node of `ir`, a span, or a tuple of them; anything else is itself."""
        if isinstance(old, tuple):
            return tuple([self.node(one) for one in old])
        if isinstance(old, Span):
            return self.place(old)
        if type(old).__module__ != ir.__name__:
            return old
        known = self._made.get(id(old))
        if known is not None:
            return known[1]
        fields: dict[str, object] = {name: self.node(getattr(old, name)) for name in type(old)._value_types}  # type: ignore[attr-defined]
        if isinstance(old, (ir.BlockIndex, ir.GridExtent)):
            fields["axis"] = old.axis + self.axes
        elif isinstance(old, ir.Leave) and self.leaves:
            fields["leaves_kernel"] = False
        made = type(old)(**fields)
        self._made[id(old)] = old, made
        return made

    def block(self, old: ir.Block) -> ir.Block:
        made = self.node(old)
        assert isinstance(made, ir.Block)
        return made

    def tensor(self, old: ir.Tensor) -> ir.Tensor:
        made = self.node(old)
        assert isinstance(made, ir.Tensor)
        return made

    def parameter(self, old: ir.Tensor | ir.ScalarParam) -> ir.Tensor | ir.ScalarParam:
        made = self.node(old)
        assert isinstance(made, (ir.Tensor, ir.ScalarParam))
        return made

    def dim(self, old: ir.Dim) -> ir.Dim:
        made = self.node(old)
        assert isinstance(made, ir.Dim)
        return made

    def constant(self, old: ir.Constant) -> ir.Constant:
        made = self.node(old)
        assert isinstance(made, ir.Constant)
        return made

    def promise(self, old: Promise) -> Promise:
        constant = None if old.constant is None else self.constant(old.constant)
        return Promise(
            old.dim, old.tile, constant, self.place(old.key), self.place(old.value), self.place(old.attribute)
        )


def copied(program: Program, copier: Copier) -> Program:
    """A program of its own. What only the text knows (`node_types`) is left behind."""
    launch = program.launch
    place = copier.place
    return Program(
        kernel=program.kernel,
        name=program.name,
        named=place(program.named),
        owner=program.owner,
        tensors={name: copier.tensor(tensor) for name, tensor in program.tensors.items()},
        params={name: _scalar(copier, param) for name, param in program.params.items()},
        parameters=tuple(copier.parameter(one) for one in program.parameters),
        dims={name: copier.dim(dim) for name, dim in program.dims.items()},
        constants={name: copier.constant(constant) for name, constant in program.constants.items()},
        launch=Launch(
            launch.threads, launch.min_blocks, launch.max_registers, None if launch.span is None else place(launch.span)
        ),
        promises=tuple(copier.promise(promise) for promise in program.promises),
        flags=program.flags,
        body=copier.block(program.body),
        variables=tuple(one for one in map(copier.node, program.variables) if isinstance(one, ir.Variable)),
        problems=tuple(placed(problem, place) for problem in program.problems),
        node_types={},
        settings=program.settings,
        inlined=program.inlined,
    )


def placed(problem: Problem, place: Place) -> Problem:
    """A problem told at other places."""
    from phobos.value import replace

    related = tuple(replace(one, span=place(one.span)) for one in problem.related)
    fix = problem.fix
    if fix is not None:
        fix = replace(fix, edits=tuple(replace(edit, span=place(edit.span)) for edit in fix.edits))
    return replace(problem, span=place(problem.span), related=related, fix=fix)


def joined(
    name: str, programs: tuple[Program, ...], body: ir.Block, launch: Launch, flags: Mapping[str, tree.Attribute]
) -> Program:
    """One program with everything that several have, the first of a name; its places are theirs."""
    tensors: dict[str, ir.Tensor] = {}
    params: dict[str, ir.ScalarParam] = {}
    dims: dict[str, ir.Dim] = {}
    constants: dict[str, ir.Constant] = {}
    parameters: dict[str, ir.Tensor | ir.ScalarParam] = {}
    settings: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for program in reversed(programs):
        tensors = {**tensors, **program.tensors}
        params = {**params, **program.params}
        dims = {**dims, **program.dims}
        constants = {**constants, **program.constants}
        settings.update(program.settings.constants)
        sizes.update(program.settings.sizes)
    for program in programs:
        for parameter in program.parameters:
            parameters.setdefault(parameter.name, parameter)
    promises: dict[tuple[str, int], Promise] = {}
    for program in programs:
        for promise in program.promises:
            promises.setdefault((promise.dim, promise.tile), promise)
    first = programs[0]
    return Program(
        kernel=first.kernel,
        name=name,
        named=first.named,
        owner=None,
        tensors={key: tensors[key] for key in parameters if key in tensors},
        params={key: params[key] for key in parameters if key in params},
        parameters=tuple(parameters.values()),
        dims=dims,
        constants={key: constants[key] for program in programs for key in program.constants},
        launch=launch,
        promises=tuple(promises.values()),
        flags=dict(flags),
        body=body,
        variables=tuple(variable for program in programs for variable in program.variables),
        problems=tuple(problem for program in programs for problem in program.problems),
        node_types={},
        settings=Settings(
            tuple(sorted(settings.items())), tuple(sorted(sizes.items())), first.settings.known_functions
        ),
        inlined=tuple(dict.fromkeys(name for program in programs for name in program.inlined)),
    )


def _scalar(copier: Copier, old: ir.ScalarParam) -> ir.ScalarParam:
    made = copier.parameter(old)
    assert isinstance(made, ir.ScalarParam)
    return made
