"""Device code of `shadows`: how accesses mark the shadow of a cell, and find the marks of other blocks."""

from __future__ import annotations

SHADOWS: dict[str, str] = {
    "ph_races": """\
// What the search for races needs besides the shadows. The shadow of a tensor of n cells is four rows of n words:
//   0  who: [phase | the first load | the first store | 3 flags], each of the two [epoch | place | block, from 1]
//   1  [phase | bits of the first value stored]
//   2  [epoch | place | block] of a second block that stored     3  the same of one that loaded
// Flags: 1 another block stored, 2 another block loaded, 4 not all stores left equal bits. A word of row 0 changes by
// compare-and-swap alone, so the accesses of a phase to a cell stand in one order, and of two the later one sees the
// earlier. Two blocks of a kind are enough: whoever comes meets one that is not it. Rows 2 and 3 are written before
// the flag that leads to them. An epoch is how many atomics the block had done in that phase. Where there are atomics a
// block remembers the last of its accesses, as what is ordered behind that is behind all.
struct ph_races {
  unsigned long long seen;    // races, so far
  unsigned long long* marks;  // all rows 0 to 3 of all tensors
  unsigned long long words;   // and how many words that is
  unsigned long long* last;   // per block [1 + phase of its last atomic | atomics in it]; null where there are none
  unsigned* word;
  ph_report* report;
  unsigned block_bits, site_bits, epoch_bits, blocks;
  unsigned limit, unused;  // phases are numbered 1 to limit, then marks are wiped out
};
""",
    "ph_peek_long": """\
__device__ __forceinline__ unsigned long long ph_peek_long(const unsigned long long* p) {
  unsigned long long x;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");
  return x;
}
""",
    "ph_put_long": """\
__device__ __forceinline__ void ph_put_long(unsigned long long* p, unsigned long long x) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(p), "l"(x) : "memory");
}
""",
    "ph_swap_long": """\
__device__ __forceinline__ unsigned long long ph_swap_long(
    unsigned long long* p, unsigned long long expected, unsigned long long x) {
  unsigned long long old;
  asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old) : "l"(p), "l"(expected), "l"(x) : "memory");
  return old;
}
""",
    "ph_count_long": """\
__device__ __forceinline__ unsigned long long ph_count_long(unsigned long long* p) {
  unsigned long long old;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;" : "=l"(old) : "l"(p) : "memory");
  return old;
}
""",
    "ph_in_order": """\
__device__ __forceinline__ void ph_in_order() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
""",
    "ph_bits_of": """\
// The bits of a cell in 32; of the wider ones a number that differs where they do, but for one chance in 2^32.
__device__ __forceinline__ unsigned ph_bits_of(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned ph_bits_of(int x) { return (unsigned)x; }
__device__ __forceinline__ unsigned ph_bits_of(signed char x) { return (unsigned char)x; }
__device__ __forceinline__ unsigned ph_bits_of(unsigned char x) { return x; }
__device__ __forceinline__ unsigned ph_bits_of(ph_f16 x) { return x.bits; }
__device__ __forceinline__ unsigned ph_bits_of(ph_bf16 x) { return x.bits; }
__device__ __forceinline__ unsigned ph_bits_of(long long x) {
  return (unsigned)x ^ (unsigned)((unsigned long long)x >> 32) * 2654435769u;
}
__device__ __forceinline__ unsigned ph_bits_of(double x) { return ph_bits_of(__double_as_longlong(x)); }
""",
    "ph_part": """\
__device__ __forceinline__ unsigned ph_part(unsigned long long word, unsigned from, unsigned bits) {
  return (unsigned)(word >> from) & ((1u << bits) - 1);
}
""",
    "ph_epoch": """\
__device__ __forceinline__ unsigned ph_epoch(const ph_races* h, unsigned block, unsigned generation) {
  if (!h->last) return 0;
  const unsigned long long last = ph_peek_long(h->last + block);
  return last >> 32 == generation + 1 ? (unsigned)last : 0;
}
""",
    "ph_mark": """\
// A block, a place and an epoch in as many bits as they have, for row 0. An epoch that does not fit is the largest that
// does: counts only grow, so one that equals it now did so then.
__device__ __forceinline__ unsigned long long ph_mark(
    const ph_races* h, unsigned block, unsigned site, unsigned epoch) {
  const unsigned most = (1u << h->epoch_bits) - 1;
  return (unsigned long long)(epoch < most ? epoch : most) << (h->block_bits + h->site_bits)
       | (unsigned long long)site << h->block_bits | (block + 1);
}
""",
    "ph_raced": """\
// `block` here and `other` there touch one cell and nothing orders them, unless both have done an atomic in this phase,
// the other one after `since`: then a chain of atomics may, and nothing is said. Who reads `last` after an atomic of
// its own sees all that is before the atomics which that one follows.
__device__ __noinline__ void ph_raced(
    ph_races* h, unsigned site, unsigned block, unsigned generation, unsigned other, unsigned there, unsigned since,
    long long at) {
  if (h->last) {
    const unsigned mine = ph_epoch(h, block, generation), theirs = ph_epoch(h, other, generation);
    if (mine && theirs && theirs != since) return;
  }
  if (ph_count_long(&h->seen)) return;
  const ph_state s = {h->word, h->report, 0, nullptr, generation, 0, block, h->blocks, 0};
  ph_stop(s, 5, site, at, (long long)other | (long long)there << 32);
}
""",
    "ph_first": """\
// Against the block of a mark in row 0. `either`: only where one of the two blocks has done no atomic, as then it is
// unordered with everybody. That is all that is known of two stores where somebody's left other bits, not whose; and of
// an atomic, whose mark comes after it, when others may have done what is ordered behind it.
__device__ __noinline__ void ph_first(
    ph_races* h, unsigned long long mark, unsigned site, unsigned block, unsigned generation, long long at,
    bool either) {
  const unsigned b = h->block_bits, t = h->site_bits, first = ph_part(mark, 0, b);
  if (first == 0 || first == block + 1) return;
  const unsigned since = either ? 0xffffffffu : ph_part(mark, b + t, h->epoch_bits);
  ph_raced(h, site, block, generation, first - 1, ph_part(mark, b, t), since, at);
}
""",
    "ph_second": """\
// The same against the second block of a kind.
__device__ __noinline__ void ph_second(
    ph_races* h, const unsigned long long* row, unsigned site, unsigned block, unsigned generation, long long at,
    bool either) {
  ph_in_order();
  const unsigned long long one = ph_peek_long(row + at);
  if ((unsigned)one == block) return;
  const unsigned since = either ? 0xffffffffu : (unsigned)(one >> 48);
  ph_raced(h, site, block, generation, (unsigned)one, (unsigned)(one >> 32) & 0xffff, since, at);
}
""",
    "ph_note": """\
// One access in row 0, at `from` for stores or loads, whose flag of a second block is `flag` and row of it `second`;
// `more` are flags to set. Gives the word as it then is.
__device__ __forceinline__ unsigned long long ph_note(
    const ph_races* h, unsigned long long* who, unsigned long long* second, unsigned from, unsigned flag, unsigned more,
    unsigned site, unsigned block, unsigned generation, unsigned epoch) {
  const unsigned width = h->block_bits + h->site_bits + h->epoch_bits, top = 3 + 2 * width;
  const unsigned long long phase = generation % h->limit + 1, mark = ph_mark(h, block, site, epoch);
  unsigned long long was = ph_peek_long(who), now;
  for (;;) {
    now = was >> top == phase ? was : phase << top;
    const unsigned first = ph_part(now, from, h->block_bits);
    if (first == 0 || (first == block + 1 && h->last)) {
      now = (now & ~(((1ull << width) - 1) << from)) | mark << from;
    } else if (first != block + 1 && (!(now & flag) || h->last)) {
      const unsigned long long rest = epoch < 0xffff ? epoch : 0xffff;
      ph_put_long(second, rest << 48 | (unsigned long long)site << 32 | block);
      ph_in_order();
      now |= flag;
    }
    now |= more;
    if (now == was) return now;
    const unsigned long long held = ph_swap_long(who, was, now);
    if (held == was) return now;
    was = held;
  }
}
""",
    "ph_load_seen": """\
// `back` is 1 for an atomic that is done: a load of the epoch before, as others may be ordered behind the atomic.
__device__ __noinline__ void ph_load_seen(
    ph_races* h, unsigned long long* shadow, long long cells, long long at, unsigned site, unsigned block,
    unsigned generation, unsigned back) {
  const unsigned width = h->block_bits + h->site_bits + h->epoch_bits;
  const unsigned epoch = ph_epoch(h, block, generation) - back;
  const unsigned long long now = ph_note(
      h, shadow + at, shadow + 3 * cells + at, 3 + width, 2, 0, site, block, generation, epoch);
  if (ph_part(now, 3, h->block_bits)) ph_first(h, now >> 3, site, block, generation, at, back);
  if (now & 1) ph_second(h, shadow + 2 * cells, site, block, generation, at, back);
}
""",
    "ph_gather_seen": """\
__device__ __forceinline__ long long ph_gather_seen(
    ph_races* h, unsigned long long* shadow, long long cells, long long at, long long length, unsigned site,
    unsigned block, unsigned generation) {
  if (ph_inside(at, length)) ph_load_seen(h, shadow, cells, at, site, block, generation, 0);
  return at;
}
""",
    "ph_store_seen": """\
__device__ __noinline__ void ph_store_seen(
    ph_races* h, unsigned long long* shadow, long long cells, long long at, unsigned site, unsigned bits,
    unsigned block, unsigned generation) {
  const unsigned width = h->block_bits + h->site_bits + h->epoch_bits;
  const unsigned long long value = (unsigned long long)(generation + 1) << 32 | bits;
  unsigned long long was = ph_peek_long(shadow + cells + at);
  bool differs = false;
  for (;;) {
    if (was >> 32 == generation + 1) {
      differs = was != value;
      break;
    }
    const unsigned long long held = ph_swap_long(shadow + cells + at, was, value);
    if (held == was) break;
    was = held;
  }
  const unsigned long long now = ph_note(
      h, shadow + at, shadow + 2 * cells + at, 3, 1, differs ? 4 : 0, site, block, generation,
      ph_epoch(h, block, generation));
  if (ph_part(now, 3 + width, h->block_bits)) ph_first(h, now >> (3 + width), site, block, generation, at, false);
  if (now & 2) ph_second(h, shadow + 3 * cells, site, block, generation, at, false);
  if (!(now & 4)) return;
  ph_first(h, now >> 3, site, block, generation, at, true);
  if (now & 1) ph_second(h, shadow + 2 * cells, site, block, generation, at, true);
}
""",
    "ph_atomic_noted": """\
__device__ __forceinline__ void ph_atomic_noted(ph_races* h, unsigned block, unsigned generation) {
  ph_put_long(h->last + block, (unsigned long long)(generation + 1) << 32 | (ph_epoch(h, block, generation) + 1));
}
""",
    "ph_forget": """\
// All CTAs together, between two barriers.
__device__ __noinline__ void ph_forget(ph_races* h) {
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long n = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; n < h->words; n += step)
    h->marks[n] = 0;
}
""",
}
"""In the order in which they must stand, behind all others."""
