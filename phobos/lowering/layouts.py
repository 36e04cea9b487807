"""The choice of layouts: one for every tile variable and every statement that loops over a tile.

Two tiles that meet element by element must give the same rows (where both have them) and the same columns to a
thread. So the tiles of a kernel fall into groups; a group shares the number of threads along a row, and is given
the number that costs least: registers and idle threads, row sums across warps, uncoalesced rows.
"""

from __future__ import annotations

from collections.abc import Callable

from phobos.language.scalars import scalar
from phobos.lowering import ops, walk
from phobos.lowering.homes import tile_named
from phobos.lowering.layout import Layout
from phobos.lowering.tensorcores import GROUP_COLUMNS, GROUP_ROWS, GROUP_UNIT, GROUP_WARPS
from phobos.lowering.vectors import elements_per_access
from phobos.semantics import ir
from phobos.semantics.multiples import WIDE_BYTES
from phobos.semantics.values import Values
from phobos.value import value

WARP = 32
ACROSS_WARPS_COST = 12  # a row's sum over several warps, in elements worked on
SCATTER_COST = 2  # factor on the work of a tile whose rows do not fill a transaction
TRANSACTION_BYTES = 128
PATCH = 4  # lanes of a warp along a row of a product: it reads 8 x 4 rows of the left operand and 4 x 4 columns
PRODUCT_COST = 6  # what a product reads per row and column register, in elements worked on

Owner = ir.Variable | ir.Statement


@value
class Units:
    """Which products run on `tensor_cores`, and may there by `warpgroups`; `held` are those that shall take their left
    operand from the registers of its warps."""

    tensor_cores: Callable[[ops.Dot], bool]
    warpgroups: Callable[[ops.Dot], bool]
    held: frozenset[ops.Dot]


class _Space:
    """The rows and columns one variable or statement runs over, before they have threads."""

    __slots__ = (
        "columns", "element_bytes", "fragment", "group", "grouped", "held", "product", "reduced", "rows", "vector"
    )  # fmt: skip

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.group: _Group = _Group()
        self.group.spaces.append(self)
        self.vector: _Class = _Class()
        self.reduced = self.product = self.fragment = False
        self.grouped = True  # warpgroups may compute it
        self.held = False  # an operand that its warps multiply from their registers
        self.element_bytes = 0  # of the tensor elements it loads or stores, 0: none


class _Class:
    """Columns that a thread holds alike: one vector width for all."""

    __slots__ = ("joined", "limit", "most_bytes", "wide")

    def __init__(self) -> None:
        self.joined: _Class | None = None
        self.limit = 0  # gcd-like: no vector may be longer (0: nothing asked yet)
        self.most_bytes = 0
        self.wide = 1  # the widest access that some tensor allows

    def find(self) -> _Class:
        one = self
        while one.joined is not None:
            one = one.joined
        return one

    def join(self, other: _Class) -> None:
        a, b = self.find(), other.find()
        if a is not b:
            b.joined = a
            a.most_bytes = max(a.most_bytes, b.most_bytes)
            a.wide = max(a.wide, b.wide)


class _Group:
    __slots__ = ("across", "joined", "patch", "row_group", "spaces", "warps")

    def __init__(self) -> None:
        self.joined: _Group | None = None
        self.spaces: list[_Space] = []
        self.across = 0
        self.patch = 0
        self.row_group = 1
        self.warps: tuple[int, int] | None = None

    def find(self) -> _Group:
        one = self
        while one.joined is not None:
            one = one.joined
        return one

    def join(self, other: _Group) -> None:
        a, b = self.find(), other.find()
        if a is not b:
            b.joined = a
            a.spaces += b.spaces


class Layouts:
    """`of(variable)` for a register tile, `of(statement)` for the loop of a statement."""

    def __init__(self, layouts: dict[Owner, Layout]) -> None:
        self._layouts = layouts

    def of(self, owner: Owner) -> Layout:
        return self._layouts[owner]

    def all(self) -> list[Layout]:
        return list(self._layouts.values())


def choose(
    body: ir.Block,
    shared: dict[ir.Variable, str],
    threads: int,
    values: Values,
    units: Units,
    *,
    vectors: bool = True,
) -> Layouts:
    """Layouts of a normalised body.

    `vectors=False` keeps every access to one element (bases of any address).
    """
    spaces: dict[Owner, _Space] = {}

    def space(owner: Owner, type_: ir.Type) -> _Space:
        if owner not in spaces:
            assert isinstance(type_, ir.TileT)
            spaces[owner] = _Space(*ops.matrix_shape(type_.shape))
        return spaces[owner]

    def meet(target: _Space, root: ir.Expression) -> None:
        """Every register tile that `root` reads element by element agrees with `target`."""
        for one in elementwise_leaves(root):
            match one:
                case ir.VariableRef(variable=variable, type=ir.TileT()):
                    if variable.kind == "view":
                        _access(target, views[variable], values, vectors)
                    elif variable not in shared:
                        _unify(target, space(variable, variable.type))
                case ir.Load(access=access, type=ir.TileT()):
                    _access(target, access, values, vectors)

    views = {s.variable: s.access for s in walk.statements(body) if isinstance(s, ir.DefineView)}
    for statement in walk.statements(body):
        match statement:
            case ir.Define(variable=variable, value=None) if walk.is_tile(variable.type):
                if variable not in shared:
                    space(variable, variable.type)
            case ir.Define(variable=variable, value=expression) | ir.Assign(variable=variable, value=expression) if (
                walk.is_tile(variable.type) and expression is not None
            ):
                target = space(statement if variable in shared else variable, variable.type)
                if variable not in shared:
                    spaces[statement] = target
                meet(target, expression)
            case ir.Store(access=access, value=expression) if (
                not access.is_point and (shape := stored_shape(statement)) is not None
            ):
                target = space(statement, ir.TileT("", shape))
                _access(target, access, values, vectors)
                meet(target, expression)
            case ops.Reduce(source=source, result=result):
                target = space(statement, source.type)
                target.reduced = True
                meet(target, source)
                _unify(target, space(result, result.type))
            case ops.Dot(result=result):
                if result not in shared:
                    target = space(result, result.type)
                else:
                    target = space(statement, result.type)
                spaces[statement] = target
                target.fragment = units.tensor_cores(statement) and (target.fragment or not target.product)
                target.grouped = target.grouped and units.warpgroups(statement)
                target.product = True
                if statement in units.held:
                    left = tile_named(statement.left)
                    assert left is not None
                    _unify(target, space(left, left.type))
                    target.held = True
    groups = {s.group.find(): None for s in spaces.values()}
    for group in groups:
        _arrange(group, threads)
    return Layouts({owner: _layout(one, threads) for owner, one in spaces.items()})


def stored_shape(statement: ir.Store) -> tuple[int, ...] | None:
    """The static shape a store of slices writes, None where a length is known only when run."""
    lengths = [sub.static if isinstance(sub, ir.SliceSub) else 1 for sub in statement.access.subs]
    return None if any(length is None for length in lengths) else tuple(lengths)  # type: ignore[arg-type]


def elementwise_leaves(root: ir.Expression) -> list[ir.Expression]:
    """The loads and variables that an elementwise expression reads at the element's own place."""
    found: list[ir.Expression] = []
    stack = [root]
    while stack:
        one = stack.pop()
        match one:
            case ir.VariableRef() | ir.Load():
                found.append(one)
            case ir.BuiltinCall(name="transpose" | "flat"):
                pass
            case ir.BuiltinCall(name="gather", arguments=(_, index)):
                stack.append(index)
            case _:
                stack += walk.operands(one)
    return found


def _unify(target: _Space, other: _Space) -> None:
    alike_rows = other.rows == target.rows > 1
    alike_columns = other.columns == target.columns > 1
    if alike_columns:
        target.vector.join(other.vector)
    if alike_rows or alike_columns:
        target.group.join(other.group)


def _access(target: _Space, access: ir.Access, values: Values, vectors: bool) -> None:
    if not isinstance(access.base, ir.Tensor):
        return
    size = scalar(access.base.dtype).bytes
    target.element_bytes = max(target.element_bytes, size)
    columns = target.vector.find()
    columns.most_bytes = max(columns.most_bytes, size)
    last = access.subs[-1]
    if isinstance(last, ir.SliceSub) and last.static == target.columns and vectors:
        columns.wide = max(columns.wide, elements_per_access(access, values))


def _vector(space: _Space, fragment: bool = False) -> int:
    """Consecutive columns of a thread: 16 bytes of the widest element, where some access can use them."""
    columns = space.vector.find()
    most = WIDE_BYTES // max(columns.most_bytes, 2)
    if fragment:
        most, wide = 2, 2
    elif space.product:
        most, wide = 4, 4
    else:
        wide = columns.wide
    width = 1
    while width * 2 <= min(most, wide) and space.columns % (width * 2) == 0:
        width *= 2
    return width


def _arrange(group: _Group, threads: int) -> None:
    """Choose how many threads stand along a row, or how warps stand over tensor-core fragments."""
    products = [space for space in group.spaces if space.product]
    if products and all(space.fragment for space in products):
        group.warps = _warps(group, products, threads // WARP)
        return
    for space in products:  # a product's columns come in fours, and so do those of all who meet it
        columns = space.vector.find()
        columns.wide, columns.most_bytes = 4, 4
    candidates = [n for n in (1, 2, 4, 8, 16) if threads % n == 0]
    candidates += [n for n in range(WARP, threads + 1, WARP) if threads % n == 0]
    if all(space.rows == 1 and not space.reduced for space in group.spaces):
        candidates = [threads]  # a row, and nobody who needs it in one warp: every element has one owner

    def cost(across: int, narrowed: int = 1) -> tuple[float, int, int]:
        total = 0.0
        for space in group.spaces:
            layout = Layout(space.rows, space.columns, threads, across, 1, max(_vector(space) // narrowed, 1))
            work = float(layout.registers)
            row_bytes = min(across, WARP) * layout.vector * space.element_bytes
            if row_bytes < min(TRANSACTION_BYTES, space.columns * space.element_bytes):
                work *= SCATTER_COST
            if space.reduced:
                work += ACROSS_WARPS_COST if across > WARP else across.bit_length() * layout.row_registers / 4
            if space.product:
                work += PRODUCT_COST * (layout.row_registers + layout.column_registers)
            total += work
        return total, narrowed, across

    # Of a row that is shorter than its threads could hold in wide pieces, narrower ones leave fewer threads that hold
    # what others hold, too.
    alone = all(space.rows == 1 and not space.product for space in group.spaces)
    widths = (1, 2, 4) if alone and any(space.reduced for space in group.spaces) else (1,)
    _, narrowed, group.across = min(cost(across, narrowed) for across in candidates for narrowed in widths)
    for columns in {space.vector.find() for space in group.spaces} if narrowed > 1 else ():
        columns.wide = max(columns.wide // narrowed, 1)
    if products:
        downs = threads // group.across
        rows = {space.rows for space in group.spaces if space.rows > 1}
        for width in (8, 4, 2):
            if all(r % (downs * width) == 0 for r in rows):
                group.row_group = min(width, 4)
                break
        if group.row_group == 4 and not any(space.reduced for space in group.spaces):
            fits = group.across % PATCH == 0 and downs % (WARP // PATCH) == 0
            group.patch = PATCH if fits and group.across < WARP else 0


def _warps(group: _Group, products: list[_Space], warps: int) -> tuple[int, int]:
    """Warps down and across: as many as the tiles can be split between; a row in one warp where rows are reduced or
    multiplied from registers; four warps down to sixty-four rows where warpgroups may compute all products."""
    reduced = any(space.reduced for space in group.spaces)
    together = reduced or any(space.held for space in group.spaces)
    if all(p.grouped for p in products):
        found = [
            (down, warps // down)
            for down in range(GROUP_WARPS, warps + 1, GROUP_WARPS)
            if warps % down == 0 and all(_is_for_groups(p, down, warps // down) for p in products)
        ]
        if found:

            def read_by_groups(shape: tuple[int, int]) -> tuple[int, int]:
                down, across = shape
                pieces = sum(p.rows // (16 * down) * (GROUP_ROWS + p.columns // across) for p in products)
                return (across if together else 0), pieces

            return min(found, key=read_by_groups)
    found = [
        (down, across)
        for down in range(1, warps + 1)
        for across in range(1, warps // down + 1)
        if all(p.rows % (16 * down) == 0 and p.columns % (8 * across) == 0 for p in products)
    ]

    def cost(shape: tuple[int, int]) -> tuple[float, ...]:
        down, across = shape
        read = sum(p.rows / down + p.columns / across for p in products)
        return warps - down * across, (across if together else 0), read

    return min(found, key=cost)


def _is_for_groups(space: _Space, down: int, across: int) -> bool:
    columns = space.columns // across
    return space.rows % (16 * down) == 0 and space.columns % (GROUP_UNIT * across) == 0 and columns <= GROUP_COLUMNS


def _layout(space: _Space, threads: int) -> Layout:
    group = space.group.find()
    if group.warps is not None:
        down, across = group.warps
        return Layout(
            space.rows, space.columns, threads, 4 * across, 1, _vector(space, True), down, across
        )  # fmt: skip
    return Layout(space.rows, space.columns, threads, group.across, group.row_group, _vector(space), patch=group.patch)
