"""What stays on chip across the barriers of one launch: what may, as far as arrays, rounds and registers allow it."""

from __future__ import annotations

from phobos.lowering.on_chip import MOST_REGISTERS, MOST_ROUNDS, Kept, on_chip_of, rounds_at
from phobos.runtime.binding import Bound
from phobos.runtime.placing import has_barrier
from phobos.value import value


@value
class Staying:
    """`keep` as `Options` takes it; `notes` for the plan: a line a tensor, with the proof or the reason."""

    keep: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]


def staying(bound: Bound, grid: tuple[int, int, int], wanted: bool = True) -> Staying:
    """For a launch of these arguments on this grid."""
    if not has_barrier(bound.program):
        return Staying((), ())
    found = on_chip_of(bound.program)
    keep: list[tuple[str, int]] = []
    notes: list[str] = []
    registers = 0
    for kept in found.kept:
        name = kept.tensor.name
        if not wanted:
            notes.append(f"`{name}` goes through memory at every barrier, as asked for")
            continue
        rounds = rounds_at(kept, bound.sizes, grid[0])
        why = _against(bound, kept, rounds, registers)
        if why:
            notes.append(f"`{name}` goes through memory at every barrier: {why}")
            continue
        assert rounds is not None
        keep.append((name, rounds))
        registers += rounds * kept.registers
        notes.append(
            f"`{name}` stays on chip, {_tiles(rounds)} in {rounds * kept.registers} registers a thread: {kept.proof}"
        )
    for refusal in found.refused:
        place = f" (line {bound.line(refusal.span)})"
        notes.append(f"`{refusal.tensor.name}` goes through memory at every barrier: {refusal.why}{place}")
    return Staying(tuple(keep), tuple(notes))


def _against(bound: Bound, kept: Kept, rounds: int | None, taken: int) -> str:
    name = kept.tensor.name
    if rounds is None:
        return "how many tiles a block has is not known"
    if rounds < 1:
        return "no block has a tile of it"
    if rounds > MOST_ROUNDS:
        return f"a block has {rounds} tiles of it, and at most {MOST_ROUNDS} are written out"
    needed = rounds * kept.registers
    if taken + needed > MOST_REGISTERS:
        more = f" beside {taken}" if taken else ""
        return f"{_tiles(rounds)} take {needed} registers a thread{more}, of {MOST_REGISTERS}"
    mine = bound.tensors.get(name)
    for other, held in bound.tensors.items():
        if other != name and mine is not None and mine.overlaps(held):
            return f"`{name}` and `{other}` share memory"
    return ""


def _tiles(rounds: int) -> str:
    return "one tile" if rounds == 1 else f"{rounds} tiles"
