"""Loops that fetch the operands of their tensor-core products ahead: which, how many rounds, and by which copies.

A round may hold several products and what is computed between them. What the loop moves is fetched into a ring of
stages, rounds before it is multiplied; what it does not move is staged once, before the loop. Copies pass no
register: 16 bytes at a time by all threads (cp.async, from sm_80 on), or whole panels at a time by one thread that
names the tensor and the place (bulk tensor copies, sm_90a), where rows lie whole multiples of 16 bytes apart.
"""

from __future__ import annotations

from phobos.language.scalars import scalar
from phobos.lowering import ops, walk
from phobos.lowering.homes import written_in
from phobos.lowering.layout import FRAGMENT_LANES
from phobos.lowering.options import Options
from phobos.lowering.panels import PIECE_BYTES, Panels
from phobos.lowering.products import ASIDE_REGISTERS, Operand, Product, whole_rounds
from phobos.lowering.vectors import extent_poly
from phobos.semantics import ir
from phobos.semantics.values import Values
from phobos.value import replace, value

MOST_STAGES = 4
PLACES_BYTES = 16  # of a stage: where it is waited for to come, and where to have been read


@value
class Fetch:
    """One side of a product that the loop stages, at `offset` of a stage, or of what is staged once."""

    dot: ops.Dot
    left: bool
    panels: Panels
    offset: int
    ahead: bool


@value
class Rounds:
    """`defines` are the views and numbers of a round that say where fetched operands lie. `in_flight`: the product of a
    round is still at work when the next begins (not beside copies by all threads, whose code would share its
    registers). `bulk`: by bulk copies; else `against_bulk` says why not. `beside`: the first and the last product of a
    round, where the first one of the next round is ordered behind the last one of this round before that is waited
    for; else `against_beside` says why not, where there are two."""

    fetches: tuple[Fetch, ...]
    defines: tuple[ir.Statement, ...]
    stages: int
    stage_bytes: int
    once_bytes: int
    in_flight: bool
    bulk: bool
    against_bulk: str
    beside: tuple[ops.Dot, ops.Dot] | None = None
    against_beside: str = ""

    @property
    def ahead(self) -> int:
        """Rounds between the fetching of an operand and its product. With bulk copies a stage stays as it is for one
        more round where there are enough, so that one warpgroup may be a round behind another."""
        return self.stages - 2 if self.bulk and self.stages > 2 else self.stages - 1

    @property
    def ring_bytes(self) -> int:
        return self.once_bytes + self.stages * self.stage_bytes

    @property
    def bytes(self) -> int:
        return self.ring_bytes + self.bulk * PLACES_BYTES * self.stages


@value
class Surroundings:
    """What a loop is judged with: `room` bytes for its operands, `registers` for each thread, the `views` of the
    kernel, and the tensors that it has `stored` to."""

    shared: dict[ir.Variable, str]
    views: dict[ir.Variable, ir.Access]
    room: int
    registers: int
    options: Options
    values: Values
    stored: frozenset[ir.Tensor]


def rounds_of(
    loop: ir.For,
    products: dict[ir.Statement, Product],
    moving: frozenset[ir.Access],
    around: Surroundings,
) -> Rounds | str:
    """How the loop fetches, or what is in the way; `products` then know what the loop stages for them.

    `moving` are the accesses of the loop whose place changes from round to round.
    """
    body = loop.body.statements
    if not all(_is_straight(statement) for statement in body):
        return "the loop holds more than straight code on its own tiles"
    dots = [s for s in body if isinstance(s, ops.Dot) and products[s].unit != "fma"]
    changed = set(written_in(*body))
    defined = {s.variable: s for s in body if isinstance(s, (ir.DefineView, ir.Define))}
    wanted: list[tuple[ops.Dot, bool, bool]] = []  # product, left, ahead
    needed: dict[ir.Statement, None] = {}
    accesses: list[tuple[Operand, Product, ir.Access]] = []
    for dot in dots:
        product = products[dot]
        for left, operand in ((True, product.left), (False, product.right)):
            if not operand.staged:
                continue
            access = _access(operand, defined)
            if access is None:
                if product.length is not None and _stays(operand, around, changed):
                    wanted.append((dot, left, False))
                continue
            if product.length is None:
                return "how long its K is is not known before the launch"
            uses = _needed(operand.expression, access, defined, changed)
            if access not in moving and uses == []:
                wanted.append((dot, left, False))
            elif uses is None:
                return "where an operand lies depends on more than the round"
            else:
                needed.update(dict.fromkeys(uses))
                wanted.append((dot, left, True))
                accesses.append((operand, product, access))
    if not accesses:
        return "no operand that the loop moves is loaded from a tensor in the loop"
    whole = {
        dot: whole_rounds(dot, products[dot], around.shared, around.options.arch)
        for dot in dots
        if products[dot].length
    }
    fetches: list[Fetch] = []
    size = {True: 0, False: 0}
    for dot, left, ahead in wanted:
        one = whole[dot].left_panels if left else whole[dot].right_panels
        assert one is not None
        fetches.append(Fetch(dot, left, one, size[ahead], ahead))
        size[ahead] += one.bytes
    others = sum(_own_bytes(whole[dot], {left for d, left, _ in wanted if d is dot}) for dot in whole)
    room = around.room - size[False] - others
    stages = min(MOST_STAGES, room // size[True])
    if stages < 2:
        return f"two buffers of {size[True]} bytes for its operands do not fit in {max(room, 0)} bytes"
    against = _against_bulk(accesses, whole, around)
    if not against and stages * (size[True] + PLACES_BYTES) > room:
        if stages > 2:
            stages -= 1
        else:
            against = f"the buffers take all of {room} bytes, and no place to wait at is left"
    order = [s for s in body if s in needed]
    alone = len(dots) == 1 and all(s is dots[0] or s in needed for s in body)
    in_flight = alone and not against and stages > 2 and _at_once(dots[0], whole[dots[0]], around)
    for dot in {d: None for d, _, _ in wanted}:
        sides = {left for d, left, _ in wanted if d is dot}
        products[dot] = _fetched(whole[dot], sides)
    beside: tuple[ops.Dot, ops.Dot] | None = None
    against_beside = ""
    if len(dots) > 1:
        against_beside = against or _against_beside(body, dots, products, around)
        if not against_beside and stages < 3:
            against_beside = "a stage is fetched again while its neighbours are read, and there are only two"
        beside = None if against_beside else (dots[0], dots[-1])
    return Rounds(
        tuple(fetches), tuple(order), stages, size[True], size[False], in_flight, not against, against, beside,
        against_beside,
    )  # fmt: skip


def _fetched(product: Product, sides: set[bool]) -> Product:
    """The product with sides that its loop stages (True: the left one)."""
    return replace(
        product,
        left=replace(product.left, fetched=True) if True in sides else product.left,
        right=replace(product.right, fetched=True) if False in sides else product.right,
        left_bytes=0 if True in sides else product.left_bytes,
        right_bytes=0 if False in sides else product.right_bytes,
    )


def _own_bytes(product: Product, sides: set[bool]) -> int:
    return (0 if True in sides else product.left_bytes) + (0 if False in sides else product.right_bytes)


def _at_once(dot: ops.Dot, product: Product, around: Surroundings) -> bool:
    """Whether nobody looks at the sums between two rounds."""
    return product.unit == "wgmma" and dot.accumulate and _in_registers(dot, product, around) and not product.left.held


# --- two rounds beside each other ---------------------------------------------------------------------------


def _against_beside(
    body: tuple[ir.Statement, ...], dots: list[ops.Dot], products: dict[ir.Statement, Product], around: Surroundings
) -> str:
    """Why the first product of a round cannot be ordered before the last one of the round before is through.

    It moves over the end of the round: all that it reads is staged, and nobody looks at its result there. The last one
    is then at work over that end: nobody looks at its sums, or changes what it multiplies, before the next round.
    """
    first, last = dots[0], dots[-1]
    one, other = products[first], products[last]
    if not all(product.unit == "wgmma" for product in (one, other)):
        return "a product is not computed by warpgroups"
    if not (one.left.fetched and one.right.fetched):
        return "the first product of a round reads what the round computes"
    if first.accumulate or not _in_registers(first, one, around):
        return "the first product of a round does not begin its own sums in registers"
    if not (last.accumulate and _in_registers(last, other, around)):
        return "the last product of a round does not add to sums in registers"
    if not (other.right.fetched and (other.left.fetched or other.left.held)):
        return "the last product of a round reads what only the round stages"
    before, after = body[: body.index(first)], body[body.index(last) + 1 :]
    if not all(isinstance(s, ir.DefineView) or _computes_no_tile(s) for s in before):
        return "a round computes before its first product"
    if any(last.result in touched_in(s) or other.left.variable in {*written_in(s)} for s in after):
        return "a round works on after its last product, with what that adds to or multiplies"
    needed = one.layout.registers + other.layout.registers + ASIDE_REGISTERS
    if other.left.held:
        needed += other.layout.row_registers * (other.length or 0) // FRAGMENT_LANES // 2  # two in a register
    if needed > around.registers:
        return f"both need about {needed} registers of a thread at once, and it may have {around.registers}"
    return ""


def _in_registers(dot: ops.Dot, product: Product, around: Surroundings) -> bool:
    """Whether the sums are the registers of the result."""
    assert isinstance(dot.result.type, ir.TileT)
    return dot.result not in around.shared and dot.result.type.dtype == product.total


def _computes_no_tile(statement: ir.Statement) -> bool:
    return isinstance(statement, ir.Define) and (
        statement.value is None or isinstance(statement.variable.type, ir.ScalarT)
    )


def touched_in(statement: ir.Statement) -> set[ir.Variable]:
    """The variables that a straight statement reads or writes."""
    read = {
        one.variable
        for root in walk.expressions(statement)
        for one in walk.every(root)
        if isinstance(one, ir.VariableRef)
    }
    return read | {*written_in(statement)}


# --- what a round is made of --------------------------------------------------------------------------------


def _is_straight(statement: ir.Statement) -> bool:
    """No way out of the round, no store that another round's fetching could pass, nobody to wait for."""
    match statement:
        case ir.Store(access=access):
            return isinstance(access.base, ir.Variable)
        case ops.Dot() | ops.Reduce() | ops.RunningSum() | ir.DefineView() | ir.Define() | ir.Assign():
            return True
    return False


def _access(operand: Operand, defined: dict[ir.Variable, ir.DefineView | ir.Define]) -> ir.Access | None:
    """Where a tensor operand is loaded: directly, or through a view of this round. (Views from outside do not move.)"""
    inner = operand.expression
    while isinstance(inner, ir.Convert):
        inner = inner.operand
    if isinstance(inner, ir.Load) and isinstance(inner.access.base, ir.Tensor):
        return inner.access
    if isinstance(inner, ir.VariableRef):
        view = defined.get(inner.variable)
        if isinstance(view, ir.DefineView) and isinstance(view.access.base, ir.Tensor):
            return view.access
    return None


def _stays(operand: Operand, around: Surroundings, changed: set[ir.Variable]) -> bool:
    """Whether a view or tile from outside the loop holds the same in all rounds."""
    inner = operand.expression
    while isinstance(inner, ir.Convert):
        inner = inner.operand
    if not isinstance(inner, ir.VariableRef) or inner.variable in changed:
        return False
    view = around.views.get(inner.variable)
    return view is None or view.base not in changed


def _needed(
    expression: ir.Expression,
    access: ir.Access,
    defined: dict[ir.Variable, ir.DefineView | ir.Define],
    changed: set[ir.Variable],
) -> list[ir.Statement] | None:
    """The statements of the round that an operand's place is computed by; None where more than numbers decides it."""
    found: dict[ir.Statement, None] = {}
    stack: list[ir.Expression] = list(walk.subscripts(access))
    for one in walk.every(expression):
        if isinstance(one, ir.VariableRef) and isinstance(defined.get(one.variable), ir.DefineView):
            found[defined[one.variable]] = None
    while stack:
        for one in walk.every(stack.pop()):
            if isinstance(one, ir.Load):
                return None
            if not isinstance(one, ir.VariableRef):
                continue
            known = defined.get(one.variable)
            if known is None:
                if one.variable in changed:
                    return None
                continue
            if (
                not isinstance(known, ir.Define)
                or known.value is None
                or one.variable.kind not in ("let", "temp")
                or not isinstance(one.variable.type, ir.ScalarT)
            ):
                return None
            if known not in found:
                found[known] = None
                stack.append(known.value)
    return list(found)


# --- bulk copies -----------------------------------------------------------------------------------------------


def _against_bulk(
    accesses: list[tuple[Operand, Product, ir.Access]], whole: dict[ops.Dot, Product], around: Surroundings
) -> str:
    """Why all threads copy instead; empty where one thread may order whole panels."""
    if around.options.arch != "sm_90a":
        return f"{around.options.arch} has no bulk copies of swizzled panels"
    if any(product.unit != "wgmma" for product in whole.values()):
        return "a product is not computed by warpgroups"
    for operand, product, access in accesses:
        tensor = access.base
        assert isinstance(tensor, ir.Tensor)
        if operand.dtype != product.dtype or isinstance(operand.expression, ir.Convert):
            return f"`{tensor.name}` is {operand.dtype}, and is multiplied as {product.dtype}"
        if tensor in around.stored:
            return f"the kernel also stores to `{tensor.name}`"
        if tensor.name in around.options.pitched:
            return f"the rows of `{tensor.name}` do not lie one after another"
        if not around.options.vectors:
            return "an array does not begin at a multiple of 16 bytes"
        if not around.options.maps:
            return "an extent is 0, or larger than a bulk copy can name"
        if len(access.subs) != 2:
            return f"`{tensor.name}` has {len(access.subs)} dimensions, not 2"
        row = extent_poly(tensor.extents[-1]) * scalar(tensor.dtype).bytes
        if around.values.divisor(row) % PIECE_BYTES:
            return f"the rows of `{tensor.name}` are not known to lie whole multiples of {PIECE_BYTES} bytes apart"
    return ""
