"""The device code of the search for races on this machine, an atomic step at a time, in orders that tests give."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from phobos.codegen.device import PIECES
from tests.codegen import host

LOAD, STORE, ATOMIC, HERE = 0, 1, 2, 3
BLOCKS, SITES, STEPS = 8, 4, 4096
NEEDED = ("ph_report", "ph_state", "ph_set_stop", "ph_peek", "ph_stop")


@dataclass(frozen=True)
class Step:
    """What one thread of a block does to the cell: an atomic `HERE` on it, or another, whose cell is `value`."""

    what: int
    block: int
    value: int = 0


TEXT = r"""
static unsigned long long shadow[4];
static unsigned long long last_of[64];
static unsigned stop_word;
static ph_report report_;
static ph_races head;
struct Plan { int count; const int* steps; unsigned generation; };
static std::vector<Plan> plans;
static int* order_of_atomics; static int atomics_done;

static void body() {
  const Plan plan = plans[this_fiber()];
  for (int i = 0; i < plan.count; ++i) {
    const int what = plan.steps[3 * i], block = plan.steps[3 * i + 1], value = plan.steps[3 * i + 2];
    if (what == 0) ph_load_seen(&head, shadow, 1, 0, block % 4, block, plan.generation, 0);
    if (what == 1) ph_store_seen(&head, shadow, 1, 0, block % 4, value, block, plan.generation);
    if (what >= 2) {
      yield_();
      ph_atomic_noted(&head, block, plan.generation);
      yield_();
      order_of_atomics[atomics_done++] = this_fiber();
      yield_();
      if (what == 3) ph_load_seen(&head, shadow, 1, 0, block % 4, block, plan.generation, 1);
    }
  }
}

EXPORTED void fresh(int block_bits, int site_bits, int epoch_bits, int limit, int with_atomics) {
  memset(shadow, 0, sizeof shadow); memset(last_of, 0, sizeof last_of);
  memset(&head, 0, sizeof head); memset(&report_, 0, sizeof report_); stop_word = 0;
  head.marks = shadow; head.words = 4; head.last = with_atomics ? last_of : nullptr;
  head.word = &stop_word; head.report = &report_;
  head.block_bits = block_bits; head.site_bits = site_bits; head.epoch_bits = epoch_bits;
  head.limit = limit; head.blocks = 8;
}
EXPORTED void forget() { blockDim.x = gridDim.x = 1; threadIdx.x = blockIdx.x = 0; ph_forget(&head); }
EXPORTED int seen() { return (int)head.seen; }
EXPORTED int block() { return report_.block; }
EXPORTED int other() { return (int)(report_.values[1] & 0xffffffff); }

// Gives the number of steps; `choices` has how many fibers could go on at each.
EXPORTED int play(int count, const int* counts, const int* steps, unsigned generation, const int* schedule,
                    int scheduled, int* choices, int most, int* atomics) {
  plans.clear(); order_of_atomics = atomics; atomics_done = 0;
  for (int f = 0, at = 0; f < count; at += 3 * counts[f], ++f) plans.push_back({counts[f], steps + at, generation});
  new_fibers(count, body);
  std::vector<int> alive(count);
  for (int f = 0; f < count; ++f) alive[f] = f;
  int step = 0;
  for (; !alive.empty() && step < most; ++step) {
    choices[step] = (int)alive.size();
    const int turn = step < scheduled ? schedule[step] % alive.size() : 0;
    if (!fiber_goes_on(alive[turn])) alive.erase(alive.begin() + turn);
  }
  return alive.empty() ? step : -1;
}
"""


@cache
def library() -> ctypes.CDLL:
    from phobos.codegen.device.shadows import SHADOWS

    pieces = [PIECES[name] for name in NEEDED] + list(SHADOWS.values())
    pieces = [PIECES["ph_f16"], PIECES["ph_bf16"], PIECES["ph_inside"], *pieces]
    text = "\n".join(pieces)
    for name, own in host.HOST_PIECES.items():
        text = text.replace(PIECES[name], own)
    text = f'#include "host.h"\n#include <vector>\n{text}\n{TEXT}'
    return host.library(text, "-fno-strict-aliasing")


class Shadow:
    """The shadow of one cell. `epochs` are the bits of an epoch in a kernel with atomics, None for one without."""

    def __init__(self, *, epochs: int | None = None, limit: int = 1000) -> None:
        self.library, self.limit, self.generation = library(), limit, 0
        bits = BLOCKS.bit_length(), SITES.bit_length(), epochs or 0
        self.library.fresh(*bits, limit, int(epochs is not None))

    def play(self, threads: Sequence[Sequence[Step]], schedule: Sequence[int]) -> tuple[list[int], list[int]]:
        """One phase: how many threads could go on at each step, and which thread did each of its atomics, in order."""
        counts = (ctypes.c_int * len(threads))(*(len(steps) for steps in threads))
        flat = [number for steps in threads for one in steps for number in (one.what, one.block, one.value)]
        choices, atomics = (ctypes.c_int * STEPS)(), (ctypes.c_int * STEPS)()
        taken = self.library.play(
            len(threads), counts, (ctypes.c_int * max(len(flat), 1))(*flat), self.generation,
            (ctypes.c_int * max(len(schedule), 1))(*schedule), len(schedule), choices, STEPS, atomics,
        )  # fmt: skip
        assert taken >= 0, "the threads do not end"
        number = sum(step.what >= ATOMIC for steps in threads for step in steps)
        return list(choices[:taken]), list(atomics[:number])

    def barrier(self) -> None:
        self.generation += 1
        if self.generation % self.limit == 0:
            self.library.forget()

    @property
    def seen(self) -> bool:
        return self.library.seen() > 0

    @property
    def blocks(self) -> tuple[int, int]:
        return self.library.block(), self.library.other()


def schedules(threads: Sequence[Sequence[Step]]) -> Iterator[Shadow]:
    """The shadow after each interleaving that there is of the steps of one phase."""
    prefix: list[int] = []
    while True:
        shadow = Shadow()
        choices, _ = shadow.play(threads, prefix)
        yield shadow
        taken = prefix + [0] * (len(choices) - len(prefix))
        while taken and taken[-1] + 1 >= choices[len(taken) - 1]:
            taken.pop()
        if not taken:
            return
        prefix = [*taken[:-1], taken[-1] + 1]
