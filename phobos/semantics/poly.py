"""Integer arithmetic on names: polynomials over atoms, in one normal form.

An index value of a program is a `Poly`: a sum of integer coefficients times products of atoms. An atom is
something the analysis does not look into: an extent, a parameter, the block index, a loop variable, or an
operation without a polynomial form (`/`, `%`, a load), keyed by what it is applied to. Two expressions that
mean the same sum have the same key, however they were spelled, commuted, distributed or named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import gcd

Atom = tuple[object, ...]
"""("dim", name) | ("param", name) | ("const", name) | ("block", axis) | ("blocks", axis) | ("var", id, version)
| ("loop", id) | ("div", key, key) | ("mod", key, key) | (anything hashable, first a kind)."""

Monomial = tuple[Atom, ...]  # sorted by repr, repeated for powers; () is the constant term

MOST_NESTED = 24  # atoms inside atoms of one value
MOST_FACTORS = 400  # atoms in all terms of one product
MOST_BITS = 256  # of a coefficient of one product: four times what an index has
"""Values that grow beyond these are taken as atoms: twice what was said in each statement would have no end."""


@lru_cache(maxsize=65536)  # an opaque atom holds whole keys, and every product sorts
def order_of(atom: Atom) -> str:
    return repr(atom)


class Poly:
    """Immutable. `terms` maps a monomial to its non-zero coefficient."""

    __slots__ = ("_atoms", "_key", "_kinds", "_text", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms: dict[Monomial, int] = dict(terms)
        if 0 in self.terms.values():
            self.terms = {m: c for m, c in terms.items() if c}
        self._key: tuple[tuple[Monomial, int], ...] | None = None
        self._text: str | None = None
        self._atoms: frozenset[Atom] | None = None
        self._kinds: set[object] | None = None

    # --- making -----------------------------------------------------------------------------------

    @staticmethod
    def of(number: int) -> Poly:
        return _SMALL.get(number) or _of_sum({(): number})

    @staticmethod
    def atom(*parts: object) -> Poly:
        return _of({(parts,): 1})

    # --- identity ---------------------------------------------------------------------------------

    @property
    def key(self) -> tuple[tuple[Monomial, int], ...]:
        """The same for two polynomials exactly when they are the same sum."""
        if self._key is None:
            items = self.terms.items()
            self._key = tuple(sorted(items, key=repr) if len(items) > 1 else items)
        return self._key

    @property
    def text(self) -> str:
        """The key in letters."""
        if self._text is None:
            self._text = repr(self.key)
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.key)

    # --- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: Poly | int) -> Poly:
        terms = self.terms.copy()
        for monomial, coefficient in other.terms.items() if isinstance(other, Poly) else (((), other),):
            known = terms.get(monomial, 0) + coefficient
            if known:
                terms[monomial] = known
            else:
                terms.pop(monomial, None)
        return _of(terms)

    def __neg__(self) -> Poly:
        return _of({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Poly | int) -> Poly:
        terms = self.terms.copy()
        for monomial, coefficient in other.terms.items() if isinstance(other, Poly) else (((), other),):
            known = terms.get(monomial, 0) - coefficient
            if known:
                terms[monomial] = known
            else:
                terms.pop(monomial, None)
        return _of(terms)

    def __mul__(self, other: Poly | int) -> Poly:
        other = _poly(other)
        terms: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = product_of(left, right)
                terms[monomial] = terms.get(monomial, 0) + a * b
        return _of_sum(terms)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: int) -> Poly:
        return _poly(other) - self

    # --- questions --------------------------------------------------------------------------------

    @property
    def constant(self) -> int | None:
        """The number this is, or None where it has atoms."""
        if not self.terms:
            return 0
        if len(self.terms) == 1:
            return self.terms.get(())
        return None

    @property
    def atoms(self) -> frozenset[Atom]:
        if self._atoms is None:
            self._atoms = frozenset([atom for monomial in self.terms for atom in monomial])
        return self._atoms

    def coefficient(self, atom: Atom) -> Poly:
        """What multiplies the first power of `atom` (powers above one count as not linear: see `is_linear_in`)."""
        terms: dict[Monomial, int] = {}
        for monomial, c in self.terms.items():
            if monomial.count(atom) == 1:
                rest = list(monomial)
                rest.remove(atom)
                terms[tuple(rest)] = terms.get(tuple(rest), 0) + c
        return Poly(terms)

    def without(self, atom: Atom) -> Poly:
        """The terms that do not mention `atom`."""
        return Poly({m: c for m, c in self.terms.items() if atom not in m})

    def is_linear_in(self, atom: Atom) -> bool:
        return all(m.count(atom) <= 1 for m in self.terms)

    def mentions(self, kind: str) -> bool:
        """Whether an atom of `kind` stands in it, at any depth of opaque operations."""
        if self._kinds is None:
            self._kinds = set()
            for atom in self.atoms:
                _note_kinds(atom, self._kinds)
        return kind in self._kinds

    def substitute(self, replace: Callable[[Atom], Poly | None]) -> Poly:
        """Each atom replaced by what `replace` says (None: left as it is)."""
        kept: dict[Monomial, int] = {}
        changed: list[Poly] = []
        for monomial, c in self.terms.items():
            if len(monomial) == 1:  # which nearly every one is
                other = replace(monomial[0])
                if other is None:
                    kept[monomial] = c
                else:
                    changed.append(other if c == 1 else _of({m: c * k for m, k in other.terms.items()}))
                continue
            replacements = [(atom, replace(atom)) for atom in monomial]
            if all(replacement is None for _, replacement in replacements):
                kept[monomial] = c
                continue
            product = Poly({tuple(atom for atom, replacement in replacements if replacement is None): c})
            for _, replacement in replacements:
                if replacement is not None:
                    product = product * replacement
            changed.append(product)
        return total((Poly(kept), *changed)) if changed else self

    def divisor(self, known: Callable[[Atom], int] = lambda atom: 1) -> int:
        """A number that divides every value of this; `known` gives one for an atom. 0 for the zero polynomial."""
        result = 0
        for monomial, c in self.terms.items():
            factor = abs(c)
            for atom in monomial:
                factor *= known(atom)
            result = gcd(result, factor)
        return result

    def __repr__(self) -> str:
        if not self.terms:
            return "0"
        return " + ".join(
            "*".join([str(c)] * (c != 1 or not m) + [_show(a) for a in m]) for m, c in self.key
        )


def _of_sum(terms: dict[Monomial, int]) -> Poly:
    """The polynomial of terms that nobody else has, zeros among them."""
    return _of({m: c for m, c in terms.items() if c} if 0 in terms.values() else terms)


def _of(terms: dict[Monomial, int]) -> Poly:
    """The same where no coefficient is zero."""
    made = Poly.__new__(Poly)
    made.terms = terms
    made._key = made._text = made._atoms = made._kinds = None
    return made


_SMALL = {number: _of_sum({(): number}) for number in range(-1, 65)}  # those that texts are full of


def product_of(left: Monomial, right: Monomial) -> Monomial:
    """The product of two monomials, in its one order."""
    return tuple(sorted(left + right, key=order_of)) if left and right else left or right


def too_deep(*operands: Poly) -> bool:
    """Whether an operation on these is not to be looked into: its atom would hold too much."""
    return sum(_nested_in(atom) for operand in operands for atom in operand.atoms) > MOST_NESTED


def _nested_in(atom: Atom) -> int:
    """How many atoms stand inside one, at any depth."""
    return sum(
        1 + _nested_in(inner) for key in atom if isinstance(key, tuple) for monomial, _ in key for inner in monomial
    )


def too_long(a: Poly, b: Poly) -> bool:
    """Whether a product is not to be multiplied out."""
    factors = sum(map(len, a.terms)) * len(b.terms) + sum(map(len, b.terms)) * len(a.terms)
    return factors > MOST_FACTORS or _bits(a) + _bits(b) > MOST_BITS


def _bits(poly: Poly) -> int:
    return max(map(int.bit_length, poly.terms.values()), default=0)


def _poly(operand: Poly | int) -> Poly:
    return operand if isinstance(operand, Poly) else Poly.of(operand)


def _note_kinds(part: tuple[object, ...], kinds: set[object]) -> None:
    """What a key begins with, and each key inside it."""
    for position, one in enumerate(part):
        if isinstance(one, tuple):
            _note_kinds(one, kinds)
        elif position == 0:
            kinds.add(one)


def _show(atom: Atom) -> str:
    return ".".join(str(part) for part in atom)


def total(parts: Iterable[Poly]) -> Poly:
    """The sum of all."""
    terms: dict[Monomial, int] = {}
    for part in parts:
        for monomial, coefficient in part.terms.items():
            terms[monomial] = terms.get(monomial, 0) + coefficient
    return Poly(terms)
