"""Numbers at which two blocks meet, looked for by repair: where there are some, no proof that they keep apart exists.

The atoms of a `Pair` are given numbers, and while something that must hold does not, one number is changed so that
it does. Quotients, minima and maxima have the value of their operands; every other atom is free within what is known
of it. What is found satisfies all that a proof may build on, so looking for a proof would be in vain. Finding nothing
says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from marshal import dumps

from phobos.semantics.knowledge import Knowledge, poly_of_key
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.solve import remember

NESTED = frozenset({"div", "min", "max"})
STEPS = 20  # repairs from one start
STARTS = ((4096, 1), (80, 64), (3, 4))  # extents and parameters to start from: far from all bounds, or near them
MOST_ATOMS = 60
_known: dict[bytes, bool] = {}

# A constant, terms of one atom by its number, and terms of more.
Form = tuple[int, tuple[tuple[int, int], ...], tuple[tuple[int, tuple[int, ...]], ...]]


class Numbers:
    """An assignment to atoms under which polynomials are never negative, or never 0."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self._index: dict[Atom, int] = {}
        self._free: list[int] = []  # the atoms that are given numbers
        self._computed: list[tuple[int, str, Form, Form]] = []  # each after those that it is made of
        self._steps: list[int] = []
        self._least: list[int | None] = []
        self._kinds: list[str] = []
        self._reads: list[frozenset[int]] = []  # by atom: the free atoms it hangs on
        self._wanted: dict[tuple[Form, bool], None] = {}  # never negative; or, where True, never 0
        self._queue: list[Atom] = []

    def want(self, polys: Iterable[Poly], nonzero: bool = False) -> None:
        """What must hold."""
        self._wanted.update(dict.fromkeys([(self._form(poly), nonzero) for poly in polys]))
        while self._queue:
            atom = self._queue.pop()
            self.want(self.knowledge.facts((atom,), (), None))

    def _form(self, poly: Poly) -> Form:
        terms = [(c, tuple([self._number(atom) for atom in m])) for m, c in poly.terms.items()]
        return (
            poly.terms.get((), 0),
            tuple([(c, row[0]) for c, row in terms if len(row) == 1]),
            tuple([(c, row) for c, row in terms if len(row) > 1]),
        )

    def _read(self, form: Form) -> frozenset[int]:
        numbers = {n for _, n in form[1]}.union(*(row for _, row in form[2]))
        return frozenset().union(*(self._reads[n] for n in numbers))

    def _number(self, atom: Atom) -> int:
        known = self._index.get(atom)
        if known is not None:
            return known
        nested = atom[0] in NESTED
        reads: frozenset[int] = frozenset()
        parts: list[Form] = []
        if nested:
            parts = [self._form(poly_of_key(key)) for key in atom[1:]]
            reads = frozenset().union(*map(self._read, parts))
        number = self._index[atom] = len(self._reads)
        nonneg = self.knowledge.nonneg(atom)
        self._reads.append(reads if nested else frozenset((number,)))
        self._least.append(0 if nonneg else None)
        self._steps.append(max(1, self.knowledge.divisor_of_atom(atom)) if not nested else 1)
        self._kinds.append(str(atom[0]))
        if nested:
            self._computed.append((number, str(atom[0]), parts[0], parts[1]))
            if nonneg:
                self._wanted[(0, ((1, number),), ()), False] = None
                if atom[0] == "div":
                    self._wanted[parts[0], False] = None
        else:
            self._free.append(number)
            self._queue.append(atom)
        return number

    def exist(self, extra: Sequence[Poly]) -> bool:
        """Whether numbers were found at which all that is wanted holds, and `extra` is never negative."""
        self.want(extra)
        if len(self._reads) > MOST_ATOMS:
            return False
        conditions = [*self._wanted]
        signs = tuple([-1 if least is None else least for least in self._least])
        question = dumps((*conditions, *self._computed, *self._kinds, *self._steps, signs), 2)
        known = _known.get(question)
        if known is None:
            known = remember(_known, question, self._found(conditions))
        return known

    def _found(self, conditions: list[tuple[Form, bool]]) -> bool:
        touched: dict[int, list[int]] = {x: [] for x in self._free}
        reads = [sorted(self._read(form)) for form, _ in conditions]
        for at, mine in enumerate(reads):
            for x in mine:
                touched[x].append(at)
        return any(self._repaired(*start, conditions, reads, touched) for start in STARTS)

    def _repaired(
        self,
        extent: int,
        parameter: int,
        conditions: list[tuple[Form, bool]],
        reads: list[list[int]],
        touched: dict[int, list[int]],
    ) -> bool:
        starts: dict[str, int] = {"param": parameter, "blocks": 3, "block": 0, "round": 0}
        numbers = [0] * len(self._reads)
        for x in self._free:
            kind, step = self._kinds[x], self._steps[x]
            numbers[x] = max(extent // step, 1) * step if kind == "dim" else starts.get(kind, 1)
        if not self._compute(numbers, None):
            return False
        values = [_value(form, numbers) for form, _ in conditions]
        broken = [value == 0 if nonzero else value < 0 for value, (_, nonzero) in zip(values, conditions)]
        chance = 1
        for _ in range(STEPS):
            wrong = [at for at, is_broken in enumerate(broken) if is_broken]
            if not wrong:
                return True
            chance = chance * 1103515245 + 12345 & 0x7FFFFFFF
            at = wrong[(chance >> 8) % len(wrong)]
            chosen: tuple[int, list[int], list[tuple[int, int, bool]]] | None = None
            turn = (chance >> 16) % len(reads[at]) if reads[at] else 0
            for x in (*reads[at][turn:], *reads[at][:turn]):
                for number in self._candidates(conditions[at], x, values[at], numbers):
                    changed = list(numbers)
                    changed[x] = number
                    if not self._compute(changed, x):
                        continue
                    worse, new = 0, []
                    for i in touched[x]:
                        form, nonzero = conditions[i]
                        value = _value(form, changed)
                        is_broken = value == 0 if nonzero else value < 0
                        worse += is_broken - broken[i]
                        new.append((i, value, is_broken))
                    chance = chance * 1103515245 + 12345 & 0x7FFFFFFF
                    rank = worse * 4 + (chance >> 16) % 6  # mostly the best, so as to leave a dead end
                    if chosen is None or rank < chosen[0]:
                        chosen = rank, changed, new
                if chosen is not None and chosen[0] < 0:
                    break  # better than it was
            if chosen is None:
                return False
            numbers = chosen[1]
            for i, value, is_broken in chosen[2]:
                values[i], broken[i] = value, is_broken
        return False

    def _candidates(self, condition: tuple[Form, bool], x: int, value: int, numbers: list[int]) -> list[int]:
        """Other numbers for an atom, which may make it hold."""
        step, now, least = self._steps[x], numbers[x], self._least[x]
        found = [now + step, now - step]
        form, nonzero = condition
        if not nonzero:
            moved = list(numbers)
            moved[x] = now + step
            if self._compute(moved, x):
                slope = _value(form, moved) - value
                if slope:
                    found.insert(0, now + step * -(value // abs(slope)) * (1 if slope > 0 else -1))
        return [n for n in dict.fromkeys(found) if n != now and (least is None or n >= least)]

    def _compute(self, numbers: list[int], changed: int | None) -> bool:
        """The values of quotients, minima and maxima; whether they have one."""
        for number, kind, a, b in self._computed:
            if changed is None or changed in self._reads[number]:
                x, y = _value(a, numbers), _value(b, numbers)
                if kind == "div":
                    if y == 0:
                        return False
                    numbers[number] = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
                else:
                    numbers[number] = min(x, y) if kind == "min" else max(x, y)
        return True


def _value(form: Form, numbers: list[int]) -> int:
    total, linear, products = form
    for c, n in linear:
        total += c * numbers[n]
    for c, row in products:
        for n in row:
            c *= numbers[n]
        total += c
    return total


__all__ = ["Numbers"]
