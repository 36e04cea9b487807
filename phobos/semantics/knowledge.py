"""What is known of each atom of a program's polynomials: sign, divisors, home, and the facts it brings along.

`Knowledge` also divides: `quotient` gives `/` its canonical form, so that `(x / k) * k + x % k` is `x` and
`(p * T + c) / T` is `p` where `0 <= c < T`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, lcm

from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, Promise
from phobos.semantics.solve import contradictory, evident, never_negative, tightened

ROOT = -1  # the home of what no loop changes
ALWAYS_ALIKE = frozenset({"dim", "blocks", "block", "const", "min", "max"})  # kinds of atoms whose facts never change
ALWAYS_NONNEG = frozenset({"dim", "block", "blocks", "round", "trips", "unsigned"})


def poly_of_key(key: object) -> Poly:
    """The polynomial whose `key` this is."""
    return Poly(dict(key))  # type: ignore[call-overload]


class Knowledge:
    """Filled by the evaluator as it meets atoms; asked by every later fact."""

    def __init__(self, program: Program, *, least_extent: int = 0) -> None:
        self.program = program
        self.least_extent = least_extent
        self.promised: dict[str, tuple[Promise, ...]] = {}
        for promise in program.promises:
            if promise.tile > 0:
                self.promised[promise.dim] = (*self.promised.get(promise.dim, ()), promise)
        self.fixed = dict(program.settings.sizes)
        self.parents: list[int] = []  # of loops, by index
        self.depths: list[int] = []
        self.homes: dict[Atom, int] = {}
        self.signs: dict[Atom, bool] = {}
        self.bounded: dict[Atom, tuple[int, int]] = {}  # inclusive ranges of atoms that have one (wrapped integers)
        self._divisors: dict[Atom, int] = {}  # of quotients, all promises believed
        self._quotients: dict[tuple[object, object], Poly] = {}
        self._facts: dict[Atom, tuple[list[Poly], Iterable[Atom]]] = {}  # that nothing else has a part in
        self.always: dict[int, tuple[Poly, ...]] = {}  # of a loop: what holds inside it by its bounds

    # --- atoms ------------------------------------------------------------------------------------

    def nonneg(self, atom: Atom) -> bool:
        known = self.signs.get(atom)
        if known is not None:
            return known
        if atom[0] in ALWAYS_NONNEG:
            return True
        if atom[0] == "const":
            return self.program.constants[str(atom[1])].value >= 0
        if atom in self.bounded:
            return self.bounded[atom][0] >= 0
        return False

    def divisor_of_atom(self, atom: Atom, promises: Sequence[Promise] | None = None) -> int:
        """A divisor of an atom; `promises` are those to believe (None: all)."""
        if atom[0] == "div":
            if promises is not None:
                return self._divisor_of_quotient(atom, promises)
            known = self._divisors.get(atom)
            if known is None:
                known = self._divisors[atom] = self._divisor_of_quotient(atom, None)
            return known
        if atom[0] != "dim":
            return 1
        result = 1
        for promise in self.promised.get(str(atom[1]), ()):
            if promises is None or promise in promises:
                result = lcm(result, promise.tile)
        return result

    def _divisor_of_quotient(self, atom: Atom, promises: Sequence[Promise] | None) -> int:
        by = poly_of_key(atom[2]).constant or 0
        whole = self.divisor(poly_of_key(atom[1]), promises) if by > 0 else 1
        return whole // by if by > 0 and whole % by == 0 else 1

    def divisor(self, poly: Poly, promises: Sequence[Promise] | None = None) -> int:
        return poly.divisor(lambda atom: self.divisor_of_atom(atom, promises))

    def dim(self, name: str) -> Poly:
        known = self.fixed.get(name)
        return Poly.atom("dim", name) if known is None else Poly.of(known)

    def home(self, poly: Poly) -> int:
        """The innermost loop whose rounds can change the value (ROOT: none)."""
        found = ROOT
        for atom in poly.atoms:
            home = self.homes.get(atom, ROOT)
            if home != ROOT and (found == ROOT or self.depths[home] > self.depths[found]):
                found = home
        return found

    def is_inside(self, loop: int, outer: int) -> bool:
        while loop != ROOT:
            if loop == outer:
                return True
            loop = self.parents[loop]
        return False

    def is_invariant(self, poly: Poly, loop: int) -> bool:
        """Whether no round of `loop` changes the value."""
        return not any(self.is_inside(self.homes.get(atom, ROOT), loop) for atom in poly.atoms)

    # --- facts ------------------------------------------------------------------------------------

    def facts(self, atoms: Iterable[Atom], given: Sequence[Poly], promises: Sequence[Promise] | None) -> list[Poly]:
        """What holds of the atoms by what they are; `given` may help to know the sign of a dividend."""
        found: list[Poly] = []
        seen: set[Atom] = set()
        stack = list(atoms)
        while stack:
            atom = stack.pop()
            if atom in seen:
                continue
            seen.add(atom)
            known = self._facts.get(atom)
            if known is None:
                known = self._facts_of(atom, given, promises)
                if atom[0] in ALWAYS_ALIKE:
                    self._facts[atom] = known
            facts, more = known
            found.extend(facts)
            stack.extend(more)
        return found

    def _facts_of(
        self, atom: Atom, given: Sequence[Poly], promises: Sequence[Promise] | None
    ) -> tuple[list[Poly], Iterable[Atom]]:
        one = Poly({(atom,): 1})
        match atom[0]:
            case "dim" if self.least_extent:
                return [one - self.least_extent], ()
            case "blocks":
                return [one - 1], ()
            case "block":
                grid = Poly.atom("blocks", atom[1])
                return [grid - 1 - one], ()
            case "const":
                known = self.program.constants[str(atom[1])].value
                return ([one - 1] if known > 0 else []), ()
            case "min":
                a, b = poly_of_key(atom[1]), poly_of_key(atom[2])
                return [a - one, b - one], a.atoms | b.atoms
            case "max":
                a, b = poly_of_key(atom[1]), poly_of_key(atom[2])
                return [one - a, one - b], a.atoms | b.atoms
            case "div":
                a, b = poly_of_key(atom[1]), poly_of_key(atom[2])
                rest = a - b * one
                facts: list[Poly] = []
                if b.terms and (self.never_negative(b, (), promises, shallow=True) or any(
                    self.nonneg(x) for x in b.atoms if b == Poly({(x,): 1})
                )):
                    if self.nonneg(atom) or self.never_negative(a, given, promises, shallow=True):
                        facts = [rest, b - 1 - rest, one]
                    else:
                        facts = [rest + b - 1, b - 1 - rest]
                    constant = b.constant
                    if constant and self.divisor(a, promises) % constant == 0:
                        facts += [rest, -rest]
                return facts, a.atoms | b.atoms
        low_high = self.bounded.get(atom)
        if low_high is not None:
            return [one - low_high[0], -one + low_high[1]], ()
        return [], ()

    def never_negative(
        self,
        goal: Poly,
        given: Sequence[Poly],
        promises: Sequence[Promise] | None = None,
        shallow: bool = False,
    ) -> bool:
        """Whether `goal >= 0` always holds where every polynomial of `given` is never negative."""
        constant = goal.constant
        if (constant is not None and constant >= 0) or evident(goal, self.nonneg):
            return True
        return never_negative(goal, self.prepared(goal, given, promises, shallow), self.nonneg)

    def prepared(
        self, goal: Poly, given: Sequence[Poly], promises: Sequence[Promise] | None = None, shallow: bool = False
    ) -> list[Poly]:
        """`given` with the facts of all atoms concerned, each as tight as divisibility makes it."""
        everything = list(given)
        if not shallow:
            atoms = set(goal.atoms)
            for one in given:
                atoms |= one.atoms
            everything += self.facts(atoms, given, promises)
        else:
            for atom in goal.atoms:
                if atom[0] in ("blocks", "block", "const"):
                    everything += self._facts_of(atom, (), promises)[0]
        return [
            tightened(one, lambda atom: self.divisor_of_atom(atom, promises)) if () in one.terms else one
            for one in everything
        ]

    def contradictory(self, given: Sequence[Poly], promises: Sequence[Promise] | None = None) -> bool:
        """Whether the given cannot all hold."""
        return contradictory(self.prepared(Poly({}), given, promises), self.nonneg)

    # --- division ---------------------------------------------------------------------------------

    def quotient(self, a: Poly, b: Poly) -> Poly:
        """`a / b`, truncated toward zero, in its one form: the same wherever it stands."""
        key = (a.key, b.key)
        known = self._quotients.get(key)
        if known is None:
            # Only the loops that walk `a` or `b` may help: their bounds hold wherever those values exist.
            known = self._quotient(a, b, self.deeper(self.home(a), self.home(b)))
            self._quotients[key] = known
        return known

    def remainder(self, a: Poly, b: Poly) -> Poly:
        return a - b * self.quotient(a, b)

    def deeper(self, a: int, b: int) -> int:
        """The inner of two loops of one nest."""
        if a == ROOT or b == ROOT:
            return b if a == ROOT else a
        return a if self.depths[a] >= self.depths[b] else b

    def bounds_around(self, loop: int) -> list[Poly]:
        """What the bounds of a loop and of those around it say."""
        found: list[Poly] = []
        while loop != ROOT:
            found.extend(self.always.get(loop, ()))
            loop = self.parents[loop]
        return found

    def _quotient(self, a: Poly, b: Poly, loop: int) -> Poly:
        divisor, number = b.constant, a.constant
        if number == 0:
            return a
        if divisor == 0:
            return Poly.atom("div", a.key, b.key)
        if divisor is not None:
            if number is not None and divisor:
                sign = -1 if (number < 0) != (divisor < 0) else 1
                return Poly.of(sign * (abs(number) // abs(divisor)))
            if divisor in (1, -1):
                return a * divisor
            if divisor < 0:
                return -self.quotient(a, -b)
        exact = divided(a, b)
        if exact is not None:
            return exact
        given = self.bounds_around(loop)
        positive = (divisor is not None and divisor > 0) or self.never_negative(b, given)
        if positive:
            whole, rest = split(a, b)
            nonneg = self.never_negative(a, given)
            if whole.terms and nonneg and self.never_negative(rest, given):
                return whole + self.quotient(rest, b)
            if nonneg and self.never_negative(b - 1 - a, given):
                return Poly({})
            common = gcd(_content(a), _content(b))
            if common > 1:
                return self.quotient(_over(a, common), _over(b, common))
            if divisor is not None and len(a.terms) == 1:
                ((monomial, c),) = a.terms.items()
                if c == 1 and len(monomial) == 1 and monomial[0][0] == "div":
                    inner = poly_of_key(monomial[0][2])
                    if (inner.constant or 0) > 0:
                        return self.quotient(poly_of_key(monomial[0][1]), inner * b)
            atom: Atom = ("div", a.key, b.key)
            if nonneg:
                self.signs[atom] = True
        else:
            atom = ("div", a.key, b.key)
        self.homes[atom] = self.deeper(self.home(a), self.home(b))
        return Poly({(atom,): 1})


def _content(poly: Poly) -> int:
    result = 0
    for c in poly.terms.values():
        result = gcd(result, c)
    return result


def _over(poly: Poly, number: int) -> Poly:
    return Poly({m: c // number for m, c in poly.terms.items()})


def divided(a: Poly, b: Poly) -> Poly | None:
    """The polynomial `q` with `a == b * q`, where there is one."""
    if not b.terms:
        return None
    constant = b.constant
    if constant is not None:
        if all(c % constant == 0 for c in a.terms.values()):
            return _over(a, constant)
        return None
    lead = max(b.terms, key=lambda m: (len(m), repr(m)))
    rest, result = a, Poly({})
    for _ in range(len(a.terms) + 4):
        if not rest.terms:
            return result
        for monomial, c in sorted(rest.terms.items(), key=lambda term: (-len(term[0]), repr(term[0]))):
            over = _without(monomial, lead)
            if over is not None and c % b.terms[lead] == 0:
                step = Poly({over: c // b.terms[lead]})
                break
        else:
            return None
        result = result + step
        rest = rest - b * step
    return None


def split(a: Poly, b: Poly) -> tuple[Poly, Poly]:
    """`(q, r)` with `a == b * q + r`, as much in `q` as single terms allow."""
    constant = b.constant
    whole: dict[tuple[Atom, ...], int] = {}
    if constant == 0:
        return Poly({}), a
    if constant is not None:
        for monomial, c in a.terms.items():
            if (monomial == () or c % constant == 0) and c // constant:
                whole[monomial] = c // constant
            # a coefficient that is no multiple stays whole in the rest
    elif len(b.terms) == 1:
        ((lead, factor),) = b.terms.items()
        for monomial, c in a.terms.items():
            over = _without(monomial, lead)
            if over is not None and c % factor == 0:
                whole[over] = c // factor
    else:
        lead = max(b.terms, key=lambda m: (len(m), repr(m)))
        quotient = Poly({})
        rest = a
        for monomial, c in sorted(a.terms.items(), key=lambda term: (-len(term[0]), repr(term[0]))):
            over = _without(monomial, lead)
            if over is not None and c % b.terms[lead] == 0:
                step = Poly({over: c // b.terms[lead]})
                if len((rest - b * step).terms) < len(rest.terms):
                    quotient, rest = quotient + step, rest - b * step
        return quotient, rest
    q = Poly(whole)
    return q, a - b * q


def _without(monomial: tuple[Atom, ...], lead: tuple[Atom, ...]) -> tuple[Atom, ...] | None:
    rest = list(monomial)
    for atom in lead:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
