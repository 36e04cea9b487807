"""Loops that fetch the operands of their tensor-core products rounds ahead, into a ring of stages in shared memory.

Copied by all threads, who then wait for each other in every round. Or in bulk: thread 0 orders whole panels, all wait
at the stage's place for the bytes, and thread 0 waits at another until every warp has read what was there before; so
one warpgroup computes while another multiplies, and where registers suffice, while it multiplies itself.
"""

from __future__ import annotations

from collections.abc import Callable

from phobos.codegen import spelling
from phobos.codegen.context import Context, View
from phobos.codegen.leaves import view_of
from phobos.codegen.tensorcores import Multiply, PanelSide
from phobos.language.scalars import scalar
from phobos.lowering import ops
from phobos.lowering.layout import WARP
from phobos.lowering.rounds import Fetch, Rounds, touched_in
from phobos.lowering.tensorcores import GROUP_WARPS
from phobos.semantics import ir

BOX_ROWS = 256  # of a bulk copy, at most


def rounds(
    context: Context, loop: ir.For, head: tuple[str, str, str, str], spell: Callable[[ir.Statement], None]
) -> None:
    """The loop over `head` (its variable, start, end and step); `spell` writes a statement of a round."""
    _Ring(context, loop, head, spell).write()


class _Ring:
    def __init__(
        self, context: Context, loop: ir.For, head: tuple[str, str, str, str], spell: Callable[[ir.Statement], None]
    ) -> None:
        self.context, self.loop, self.spell = context, loop, spell
        self.name, self.lo, self.hi, self.step = head
        self.plan: Rounds = context.lowered.rounds[loop]
        self.base = context.lowered.shared.places[context.lowered.scratches[loop]].offset

    def write(self) -> None:
        out, plan, context = self.context.out, self.plan, self.context
        groups = any(context.lowered.products[fetch.dot].unit == "wgmma" for fetch in plan.fetches)
        if groups:
            form = context.lowered.options.form
            phases = plan.bulk and form is not None and len(form.phases) > 1
            out.line("ph_others_see_all();" if phases else "ph_others_see();")
        out.line("__syncthreads();  // the buffers may have been in use")
        with out.block():
            stages, ahead = plan.stages, plan.ahead
            first = [(f"{self.lo} + {n} * {self.step}" if n else self.lo, str(n)) for n in range(ahead)]
            fetch = f"auto fetch = [&](const long long {self.name}, const int slot)"
            if plan.bulk:  # the first rounds are on their way while the threads stage what stays
                places = self.base + plan.ring_bytes
                out.line(f"unsigned long long* const there = (unsigned long long*)(shared + {places});")
                out.line(f"unsigned long long* const read = there + {stages};")
                with out.lambda_(fetch):
                    self._fetch()
                with out.block("if (tid == 0)"):
                    with out.block(f"for (int n = 0; n < {stages}; ++n)"):
                        out.line("ph_bulk_open(there + n, 1);")
                        out.line(f"ph_bulk_open(read + n, {context.program.launch.threads // WARP});")
                    out.line("ph_others_see();")
                    for at, slot in first:
                        out.line(f"if ({at} < {self.hi}) fetch({at}, {slot});")
            self._once()
            if groups:
                out.line("ph_others_see();")
            out.line("__syncthreads();")
            if not plan.bulk:
                with out.lambda_(fetch):
                    self._fetch()
                for at, slot in first:
                    self._order(at, slot)
            out.line(f"int slot = 0, next = {ahead};")
            if plan.bulk:
                out.line("unsigned parity = 0, next_parity = 1;")
            if plan.in_flight or plan.beside:
                out.line("int before = -1;")
            if plan.beside:
                self._beside(*plan.beside)
            else:
                with out.block(self._head(f"{self.name} < {self.hi}")):
                    self._round(groups)
            if plan.in_flight:
                out.line("ph_group_wait<0>();")
            if plan.bulk:
                out.line("__syncthreads();")
                out.line(f"if (tid == 0) for (int n = 0; n < {2 * stages}; ++n) ph_bulk_close(there + n);")
            else:
                out.line("ph_copies_wait<0>();")

    def _head(self, condition: str) -> str:
        return f"for (long long {self.name} = {self.lo}; {condition}; {self.name} += {self.step})"

    def _stage(self, slot: str) -> dict[tuple[ir.Statement, bool], str]:
        """The operands of the products lie in this slot of the ring, or where they are staged once."""
        plan, context = self.plan, self.context
        stage = context.names.fresh("stage")
        ring = self.base + plan.once_bytes
        context.out.line(f"unsigned char* const {stage} = shared + {ring} + {slot} * {plan.stage_bytes};")
        found: dict[tuple[ir.Statement, bool], str] = {}
        for fetch in plan.fetches:
            place = f"{stage} + {fetch.offset}" if fetch.ahead else f"shared + {self.base + fetch.offset}"
            found[fetch.dot, fetch.left] = place
        context.fetched |= found
        return found

    def _beside(self, first: ops.Dot, last: ops.Dot) -> None:
        """Rounds whose last product is at work while the next one begins: the first product of that one is ordered
        before it, and its sums are waited for where the next round comes to them."""
        context, out, plan = self.context, self.context.out, self.plan
        context.awaited |= {first, last}
        others = [s for s in self.loop.body.statements if s is not first and s is not last]
        at_sums = next((n for n, s in enumerate(others) if last.result in touched_in(s)), len(others))
        coming = f"{self.name} + {self.step}"
        with out.block(f"if ({self.lo} < {self.hi})"):
            out.line("ph_bulk_wait(there, 0);")
            groups = context.program.launch.threads // (GROUP_WARPS * WARP)
            if groups > 1:  # one begins after another, so that one computes while another multiplies
                warp = context.warp()
                out.line(f"if ({warp} >= {GROUP_WARPS}) ph_group_after({warp} / {GROUP_WARPS});")
            with out.block():
                self._stage("0")
                self.spell(first)
            out.line("ph_group_end();  // as if there were a round before")
            if groups > 1:
                out.line("ph_group_wait<0>();")
                out.line(f"if ({warp} < {GROUP_WARPS * (groups - 1)}) ph_group_before({warp} / {GROUP_WARPS} + 1);")
            with out.block(self._head("")):
                here = self._stage("slot")
                out.line("ph_group_wait<1>();")
                out.line(f"ph_there({context.name(first.result)});")
                self._order(f"{self.name} + {plan.ahead} * {self.step}", "next")
                for statement in others[:at_sums]:
                    self.spell(statement)
                out.line("ph_group_wait<0>();")
                out.line(f"ph_there({context.name(last.result)});")
                out.line("if (tid % 32 == 0 && before >= 0) ph_bulk_done(read + before);")
                for statement in others[at_sums:]:
                    self.spell(statement)
                with out.block(f"if ({coming} >= {self.hi})"):
                    self.spell(last)
                    out.line("ph_group_wait<0>();")
                    out.line("break;")
                out.line("before = slot;")
                self._turn("slot", "parity")
                out.line("ph_bulk_wait(there + slot, parity);")
                with out.block():
                    out.at(context.line_of(last.span))
                    multiply = Multiply(context, last, context.name(last.result))
                    multiply.places()
                    multiply.hold()
                    self._stage("slot")
                    self.spell(first)
                    context.fetched |= here
                    out.at(context.line_of(last.span))
                    multiply.step()
                self._turn("next", "next_parity")
        context.awaited -= {first, last}

    def _turn(self, name: str, parity: str) -> None:
        turn = f" {parity} ^= 1;" if self.plan.bulk else ""
        self.context.out.line(f"if ({name} == {self.plan.stages - 1}) {{ {name} = 0;{turn} }} else ++{name};")

    def _round(self, groups: bool) -> None:
        out, plan, context = self.context.out, self.plan, self.context
        if plan.bulk:
            out.line("ph_bulk_wait(there + slot, parity);")
        else:
            out.line(f"ph_copies_wait<{plan.ahead - 1}>();")
            if groups:
                out.line("ph_others_see();")
            out.line("__syncthreads();  // this round's operands are there, and those before have been read")
        self._stage("slot")
        coming = f"{self.name} + {plan.ahead} * {self.step}"
        if plan.in_flight:
            dot = next(s for s in self.loop.body.statements if isinstance(s, ops.Dot))
            with out.block():
                multiply = Multiply(context, dot, context.name(dot.result))
                multiply.places()
                multiply.step()
            self._order(coming, "next")
            out.line("ph_group_wait<1>();  // of the round before")
            out.line("if (tid % 32 == 0 && before >= 0) ph_bulk_done(read + before);")
            out.line("before = slot;")
        else:
            self._order(coming, "next")
            for statement in self.loop.body.statements:
                self.spell(statement)
            if plan.bulk:
                out.line("if (tid % 32 == 0) ph_bulk_done(read + slot);")
        self._turn("slot", "parity")
        self._turn("next", "next_parity")

    def _order(self, at: str, slot: str) -> None:
        """Fetch the operands of the round at `at` where there is one."""
        if self.plan.bulk:
            with self.context.out.block(f"if (tid == 0 && {at} < {self.hi})"):
                self.context.out.line("ph_bulk_wait(read + next, next_parity);")
                self.context.out.line(f"fetch({at}, {slot});")
        else:
            self.context.out.line(f"if ({at} < {self.hi}) fetch({at}, {slot}); else ph_copies_end();")

    # --- fetching -------------------------------------------------------------------------------------

    def _side(self, fetch: Fetch, place: str) -> PanelSide:
        side = PanelSide(self.context, fetch.dot, self.context.lowered.products[fetch.dot], fetch.left)
        side.name = self.context.names.fresh(side.name)
        cell = spelling.CELLS[side.stored]
        self.context.out.line(f"{cell}* const {side.name} = ({cell}*)({place});")
        side.open()
        return side

    def _once(self) -> None:
        """What stays the same over all rounds."""
        for fetch in self.plan.fetches:
            if not fetch.ahead:
                with self.context.out.block():
                    side = self._side(fetch, f"shared + {self.base + fetch.offset}")
                    self.context.out.line("const long long k0 = 0;")
                    side.stage(str(self.context.lowered.products[fetch.dot].length))

    def _fetch(self) -> None:
        context, out, plan = self.context, self.context.out, self.plan
        views, declared = dict(context.views), set(context.declared)
        out.line(f"unsigned char* const stage = shared + {self.base + plan.once_bytes} + slot * {plan.stage_bytes};")
        for statement in plan.defines:
            self.spell(statement)
        fetches = [fetch for fetch in plan.fetches if fetch.ahead]
        if plan.bulk:
            size = sum(fetch.panels.panel_bytes * (fetch.panels.across // fetch.panels.width) for fetch in fetches)
            out.line(f"ph_bulk_expect(there + slot, {size});")
        else:
            out.line("const long long k0 = 0;")
        for fetch in fetches:
            if plan.bulk:
                self._bulk(fetch)
            else:
                side = self._side(fetch, f"stage + {fetch.offset}")
                side.stage(str(context.lowered.products[fetch.dot].length), asynchronous=True)
        if not plan.bulk:
            out.line("ph_copies_end();")
        context.views.clear()
        context.views.update(views)
        context.declared.clear()
        context.declared.update(declared)

    def _bulk(self, fetch: Fetch) -> None:
        context, out, panels = self.context, self.context.out, fetch.panels
        product = context.lowered.products[fetch.dot]
        view = self._view((product.left if fetch.left else product.right).expression)
        tensor = view.access.base
        assert isinstance(tensor, ir.Tensor)
        context.wide[tensor.name] = max(context.wide.get(tensor.name, 0), 16)
        rows = panels.lines
        while rows > BOX_ROWS:
            rows //= 2
        argument = context.map(tensor, rows, panels.width)
        row, column = view.firsts
        size = scalar(tensor.dtype).bytes
        panels_across = panels.across // panels.width
        with out.rows(f"for (int panel = 0; panel < {panels_across}; ++panel)"):
            for first in range(0, panels.lines, rows):
                to = f"stage + {fetch.offset + first * panels.width * size} + panel * {panels.panel_bytes}"
                at = f"{row} + {first}" if first else row
                out.line(f"ph_bulk_copy({to}, {argument}, {at}, {column} + panel * {panels.width}, there + slot);")

    def _view(self, expression: ir.Expression) -> View:
        if isinstance(expression, ir.Load):
            return view_of(self.context, expression.access, self.context.names.fresh("from"))
        assert isinstance(expression, ir.VariableRef)
        return self.context.views[expression.variable]
