"""Device code about the grid: reports, the barrier, how a kernel stops or runs out of time, traces, and atomics."""

from __future__ import annotations

GRID: dict[str, str] = {
    # --- waiting, and how a kernel stops -----------------------------------------------------------
    "ph_anew": """\
// The same number, which the compiler takes for another one each time: what follows from it is then computed in each
// round of the loop over blocks, and not held in registers over all of them.
__device__ __forceinline__ int ph_anew(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
""",
    "ph_report": """\
// Lies in host memory that the device can write. Whoever stops the grid first says why.
struct ph_report {
  unsigned code, site, block, generation;
  long long values[2];
  unsigned word, blocks, capacity, unused;
  unsigned waits[1];  // per block, as far as there is capacity: 1 + the place where it was stopped
};
""",
    "ph_state": """\
struct ph_state {
  unsigned* word;       // bit 0: stop. The barrier's own word where there is one
  ph_report* report;
  unsigned long long timeout_ns;  // 0: none
  unsigned* groups;     // a line of 128 bytes for every 64 CTAs, or null
  unsigned generation;  // barriers passed
  unsigned before;      // the barrier word's top bit before the next barrier; 1: not known yet
  unsigned block, blocks;  // the number of this block, and how many there are
  unsigned leaving;     // a virtual block has ended because the whole grid is to leave
};
""",
    "ph_now": """\
__device__ __forceinline__ unsigned long long ph_now() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
""",
    "ph_peek": """\
__device__ __forceinline__ unsigned ph_peek(const unsigned* word) {
  unsigned x;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(word) : "memory");
  return x;
}
""",
    "ph_set_stop": """\
__device__ __forceinline__ unsigned ph_set_stop(unsigned* word) {
  unsigned before;
  asm volatile("atom.or.acq_rel.gpu.global.b32 %0, [%1], 1;" : "=r"(before) : "l"(word) : "memory");
  return before;
}
""",
    "ph_stop": """\
// Ask the whole grid to leave; the first to ask writes down the cause. One thread of a CTA calls it.
__device__ __forceinline__ void ph_stop(const ph_state& s, unsigned code, unsigned site, long long a, long long b) {
  const unsigned was = ph_set_stop(s.word);
  if (!(was & 1)) {
    volatile ph_report* r = s.report;
    r->site = site;
    r->block = s.block;
    r->generation = s.generation;
    r->values[0] = a;
    r->values[1] = b;
    r->word = was;
    r->blocks = s.blocks;
    __threadfence_system();
    r->code = code;
  }
}
""",
    "ph_waiting": """\
__device__ __forceinline__ void ph_waiting(const ph_state& s, unsigned site) {
  volatile ph_report* r = s.report;
  if (s.block < r->capacity) r->waits[s.block] = site + 1;
  __threadfence_system();
}
""",
    "ph_vote": """\
// Whether to leave, the same in all threads: what thread 0 says. That the report is written after the vote makes its
// outcome needed even where a kernel ends with it: the assembler makes an illegal instruction of one that is not.
__device__ __forceinline__ bool ph_vote(const ph_state& s, int leave, unsigned site) {
  const bool leaving = __syncthreads_or(leave);
  if (leaving && threadIdx.x == 0) ph_waiting(s, site);
  return leaving;
}
""",
    "ph_expired": """\
// Now and then: whether `since` (0 at first) is longer ago than the time given.
__device__ __forceinline__ bool ph_expired(const ph_state& s, unsigned long long& since) {
  if (s.timeout_ns == 0) return false;
  const unsigned long long now = ph_now();
  if (since == 0) since = now;
  return now - since > s.timeout_ns;
}
""",
    "ph_arrive": """\
__device__ __forceinline__ unsigned ph_arrive(unsigned* word, unsigned step) {
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(step) : "memory");
  return before;
}
""",
    "ph_grid_barrier": """\
// Of `members` arrivals at a word each adds 2, the first member what is missing to 2^31: when all have come, the top
// bit has changed, and nothing else. Bit 0 asks everybody to leave. A grid too large for one word to take all arrivals
// quickly has a word for every 64 CTAs, too, and the last of each group arrives at the word that all watch.
// Returns whether to leave, the same in all threads of the CTA.
__device__ __forceinline__ bool ph_grid_barrier(ph_state& s, unsigned* word, unsigned site) {
  int leave = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned before;
    if (gridDim.x <= 768 || s.groups == nullptr) {
      before = ph_arrive(word, blockIdx.x == 0 ? 0x80000000u - 2u * (gridDim.x - 1) : 2u);
    } else {
      const unsigned group = blockIdx.x / 64, groups = (gridDim.x + 63) / 64;
      const unsigned members = group + 1 < groups ? 64u : gridDim.x - group * 64;
      const unsigned step = blockIdx.x % 64 == 0 ? 0x80000000u - 2u * (members - 1) : 2u;
      if (s.before & 1) s.before = ph_peek(word) & 0x80000000u;  // it cannot change before this CTA has come
      before = s.before;
      s.before ^= 0x80000000u;
      const unsigned was = ph_arrive(s.groups + 32 * group, step);
      if ((was ^ (was + step)) & 0x80000000u) ph_arrive(word, group == 0 ? 0x80000000u - 2u * (groups - 1) : 2u);
    }
    unsigned seen, turns = 0;
    unsigned long long since = 0;
    for (;;) {
      seen = ph_peek(word);
      if (((seen ^ before) & 0x80000000u) || (seen & 1)) break;
      if ((++turns & 0xfff) == 0) {
        if (ph_expired(s, since)) ph_stop(s, 1, site, 0, 0);
        if (word != s.word && (ph_peek(s.word) & 1)) {  // a kernel with several barrier tensors
          seen = 1;
          break;
        }
      }
    }
    leave = seen & 1;
  }
  ++s.generation;
  return ph_vote(s, leave, site);
}
""",
    "ph_poll": """\
// In a loop that may wait for other CTAs: every 256th round, whether to leave. The same in all threads.
__device__ __forceinline__ bool ph_poll(const ph_state& s, unsigned& rounds, unsigned long long& since, unsigned site) {
  if ((++rounds & 0xff) != 0) return false;
  int leave = 0;
  if (threadIdx.x == 0) {
    if (ph_expired(s, since)) ph_stop(s, 1, site, 0, 0);
    leave = ph_peek(s.word) & 1;
  }
  return ph_vote(s, leave, site);
}
""",
    # --- tracing -----------------------------------------------------------------------------------
    "ph_multiprocessor": """\
__device__ __forceinline__ unsigned ph_multiprocessor() {
  unsigned n;
  asm volatile("mov.u32 %0, %smid;" : "=r"(n));
  return n;
}
""",
    "ph_trace": """\
// When a CTA is where, in nanoseconds: thread 0 writes. A buffer begins with how many intervals there is room for in a
// CTA, and for how many CTAs; from word 16 on each CTA has its start, end, multiprocessor and number of intervals, then
// the beginning, the end, and the place and number of each.
struct ph_trace {
  unsigned long long* mine;
  unsigned long long since;
  unsigned count, room;
  __device__ __forceinline__ ph_trace(unsigned long long* buffer, unsigned block) {
    mine = nullptr;
    count = room = 0;
    if (threadIdx.x == 0 && block < buffer[1]) {
      room = buffer[0];
      mine = buffer + 16 + block * (4 + 3ull * room);
      mine[2] = ph_multiprocessor();
      mine[0] = ph_now();
    }
  }
  __device__ __forceinline__ void begin() {
    __syncthreads();
    if (mine) since = ph_now();
  }
  __device__ __forceinline__ void end(unsigned site, unsigned number) {
    if (!mine) return;
    if (count < room) {
      unsigned long long* const one = mine + 4 + 3 * count;
      one[0] = since;
      one[1] = ph_now();
      one[2] = site | (unsigned long long)number << 32;
    }
    ++count;
  }
  __device__ __forceinline__ ~ph_trace() {
    __syncthreads();
    if (mine) {
      mine[1] = ph_now();
      mine[3] = count;
    }
  }
};
""",
    # --- atomics ----------------------------------------------------------------------------------
    "ph_atomic_add": """\
__device__ __forceinline__ int ph_atomic_add(int* p, int v) {
  int old;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}
""",
    "ph_atomic_cas": """\
__device__ __forceinline__ int ph_atomic_cas(int* p, int expected, int v) {
  int old;
  asm volatile("atom.cas.acq_rel.gpu.global.b32 %0, [%1], %2, %3;"
               : "=r"(old) : "l"(p), "r"(expected), "r"(v) : "memory");
  return old;
}
""",
}
