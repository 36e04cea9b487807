// The machinery behind host.h: fibers, who runs when, and what copies and products that are under way do when waited for.
#include "host.h"

#include <cstdlib>
#include <map>
#include <setjmp.h>
#include <ucontext.h>
#include <vector>

static const size_t STACK_BYTES = 256 * 1024;  // touched only as far as it is used

namespace {

struct Box { unsigned to; const ph_map* map; long long row, column; };
struct Bulk { unsigned phase = 0, count = 0, arrived = 0; size_t expected = 0, ordered = 0; std::vector<Box> boxes; };
struct Cta {
  std::map<void*, Bulk> bulks;
  std::map<int, int> let, waited;  // threads that let a warpgroup go on, and its threads that waited for them
  Index block;
  std::vector<unsigned char> shared;
  int arrived = 0, generation = 0, any = 0, last_any = 0, left = 0;
  std::vector<unsigned char> exchange;
  std::vector<int> warp_arrived, warp_generation;
};
struct Copy { void* to; const void* from; size_t bytes; bool inside; };
struct GroupProduct {
  float *upper, *lower;
  bool held, turned;
  unsigned short rows[2][16];  // of a held left operand
  unsigned long long a, b;
  int columns;
  float (*value)(unsigned short);
};
struct Fiber {
  std::vector<Copy> open;
  std::vector<std::vector<Copy>> under_way;
  std::vector<GroupProduct> told;
  std::vector<std::vector<GroupProduct>> at_work;
  jmp_buf at;
  Cta* cta = nullptr;
  unsigned thread = 0;
  bool begun = false, done = false;
  void* stack = nullptr;
  ~Fiber() { free(stack); }
};

unsigned threads_of_cta;
Fiber* current;
jmp_buf scheduler;
void (*kernel_body)();
std::vector<Fiber> alone;  // those of `new_fibers`

void enter() {
  kernel_body();
  current->done = true;
  _longjmp(scheduler, 1);
}

// Another stack to begin with, as makecontext gives it; after that `_setjmp` changes over, which asks nothing of the
// operating system, as swapcontext does each time for the signals that are held back.
void begin(Fiber& f) {
  f.begun = true;
  f.stack = malloc(STACK_BYTES);
  ucontext_t start;
  getcontext(&start);
  start.uc_stack.ss_sp = f.stack; start.uc_stack.ss_size = STACK_BYTES; start.uc_link = nullptr;
  makecontext(&start, enter, 0);
  setcontext(&start);
}

void go_on(Fiber& f) {
  current = &f;
  if (_setjmp(scheduler)) return;
  if (f.begun) _longjmp(f.at, 1);
  begin(f);
}

void warp_wait() {
  Cta& c = *current->cta;
  const unsigned w = current->thread / 32;
  const int mine = c.warp_generation[w];
  if (++c.warp_arrived[w] == 32) { c.warp_arrived[w] = 0; ++c.warp_generation[w]; }
  else while (c.warp_generation[w] == mine) yield_();
}
// What each lane of a warp gives, seen by all of them.
template <typename T> void all_lanes(const T& mine, T (&all)[32]) {
  static_assert(sizeof(T) <= 16, "a slot is 16 bytes");
  Cta& c = *current->cta;
  memcpy(&c.exchange[16 * current->thread], &mine, sizeof(T));
  warp_wait();
  for (int lane = 0; lane < 32; ++lane) memcpy(&all[lane], &c.exchange[16 * ((current->thread & ~31u) | lane)], sizeof(T));
  warp_wait();
}
struct Registers4 { unsigned x[4]; };
struct Registers2 { unsigned x[2]; };

// What tensor cores and bulk copies read and write: 16-byte pieces change places by the bits above, as the address has it.
unsigned swizzled(unsigned at, unsigned row_bytes) { return at ^ ((at >> 7 & (row_bytes / 16 - 1)) << 4); }
unsigned short described(unsigned long long d, int line, int k, bool turned) {
  const unsigned start = (d & 0x3fff) << 4, panel = (d >> 16 & 0x3fff) << 4, rows = (d >> 32 & 0x3fff) << 4;
  const unsigned row_bytes = 256u >> (d >> 62), width = row_bytes / 2;
  const unsigned at = turned ? start + line / width * panel + k / 8 * rows + k % 8 * row_bytes + line % width * 2
                             : start + line / 8 * rows + line % 8 * row_bytes + k * 2;
  unsigned short x;
  memcpy(&x, shared_of_cta() + swizzled(at, row_bytes), 2);
  return x;
}
void group_happens(const GroupProduct& p) {
  const int lane = current->thread % 32, first = current->thread / 32 % 4 * 16 + lane / 4;
  for (int side = 0; side < 2; ++side) for (int c = 0; c < p.columns / 4; ++c) {
    const int column = c / 2 * 8 + lane % 4 * 2 + c % 2;
    float& sum = (side ? p.lower : p.upper)[c];
    for (int k = 0; k < 16; ++k) {
      const unsigned short x = p.held ? p.rows[side][k] : described(p.a, first + 8 * side, k, false);
      sum += p.value(x) * p.value(described(p.b, column, k, p.turned));
    }
  }
}
void bulk_happens(const Box& box) {
  const unsigned long long* w = box.map->words;  // base, rows, columns, bytes of a row, rows and columns of a box
  for (long long r = 0; r < (long long)w[4]; ++r) for (long long c = 0; c < (long long)w[5]; ++c) {
    const long long row = box.row + r, column = box.column + c;
    unsigned short x = 0;
    if (row >= 0 && row < (long long)w[1] && column >= 0 && column < (long long)w[2])
      memcpy(&x, (const unsigned char*)w[0] + row * w[3] + column * 2, 2);
    memcpy(shared_of_cta() + swizzled(box.to + r * w[5] * 2 + c * 2, w[5] * 2), &x, 2);
  }
}

}  // namespace

Index threadIdx, blockIdx, gridDim, blockDim;

void yield_() {
  if (!_setjmp(current->at)) _longjmp(scheduler, 1);
}
unsigned char* shared_of_cta() {
  return (unsigned char*)(((uintptr_t)current->cta->shared.data() + 31) & ~(uintptr_t)31);
}
unsigned offset_in_cta(const void* p) { return (unsigned)((const unsigned char*)p - shared_of_cta()); }

int __syncthreads_or(int x) {
  Cta& c = *current->cta;
  const int mine = c.generation;
  c.any |= x != 0;
  if (++c.arrived == (int)threads_of_cta) {
    c.arrived = 0; c.last_any = c.any; c.any = 0; ++c.generation;
  } else while (c.generation == mine) yield_();
  return c.last_any;
}
void from_lane(const void* mine, void* its, size_t bytes, int mask) {
  Cta& c = *current->cta;
  memcpy(&c.exchange[16 * current->thread], mine, bytes);
  warp_wait();
  memcpy(its, &c.exchange[16 * ((current->thread & ~31u) | ((current->thread & 31u) ^ (unsigned)mask))], bytes);
  warp_wait();
}

void fragments(unsigned* x, const void* row, bool turned, int pieces) {
  const unsigned short* rows[32];
  all_lanes((const unsigned short*)row, rows);
  const int lane = current->thread & 31;
  for (int m = 0; m < pieces; ++m) {
    unsigned short half[2];
    for (int e = 0; e < 2; ++e) half[e] = turned ? rows[8 * m + lane % 4 * 2 + e][lane / 4] : rows[8 * m + lane / 4][lane % 4 * 2 + e];
    x[m] = half[0] | (unsigned)half[1] << 16;
  }
}
void multiply(float* upper, float* lower, const unsigned* a, const unsigned* b, float (*value)(unsigned short)) {
  Registers4 mine_a = {a[0], a[1], a[2], a[3]}, all_a[32];
  Registers2 mine_b = {b[0], b[1]}, all_b[32];
  all_lanes(mine_a, all_a);
  all_lanes(mine_b, all_b);
  const int lane = current->thread & 31;
  for (int side = 0; side < 2; ++side) for (int e = 0; e < 2; ++e) {
    const int row = lane / 4 + 8 * side, column = lane % 4 * 2 + e;
    float sum = side ? lower[e] : upper[e];
    for (int k = 0; k < 16; ++k) {
      const unsigned x = all_a[row % 8 * 4 + k % 8 / 2].x[(k >= 8) * 2 + (row >= 8)];
      const unsigned y = all_b[column * 4 + k % 8 / 2].x[k >= 8];
      sum += value((unsigned short)(x >> 16 * (k % 2))) * value((unsigned short)(y >> 16 * (k % 2)));
    }
    (side ? lower : upper)[e] = sum;
  }
}

void copy_order(void* to, const void* from, size_t bytes, bool inside) { current->open.push_back({to, from, bytes, inside}); }
void copies_end() {
  current->under_way.push_back(current->open);
  current->open.clear();
}
void copies_wait(size_t left) {
  while (current->under_way.size() > left) {
    for (const Copy& c : current->under_way.front()) c.inside ? (void)memcpy(c.to, c.from, c.bytes) : (void)memset(c.to, 0, c.bytes);
    current->under_way.erase(current->under_way.begin());
  }
}

void group_tell(float* upper, float* lower, const unsigned* held, unsigned long long a, unsigned long long b, int columns, bool turned, float (*value)(unsigned short)) {
  GroupProduct p = {upper, lower, held != nullptr, turned, {}, a, b, columns, value};
  if (held) {
    Registers4 mine = {held[0], held[1], held[2], held[3]}, all[32];
    all_lanes(mine, all);
    const int lane = current->thread % 32;
    for (int side = 0; side < 2; ++side) for (int k = 0; k < 16; ++k)
      p.rows[side][k] = (unsigned short)(all[lane / 4 * 4 + k % 8 / 2].x[(k >= 8) * 2 + side] >> 16 * (k % 2));
  }
  current->told.push_back(p);
}
void group_end() { current->at_work.push_back(current->told); current->told.clear(); }
void group_wait(size_t left) {
  auto& work = current->at_work;
  while (work.size() > left) {
    for (const GroupProduct& p : work.front()) group_happens(p);
    work.erase(work.begin());
  }
  warp_wait();  // the lanes of a warp go on together
}
void group_after(int group) {
  const int turn = current->cta->waited[group]++ / 128;
  while (current->cta->let[group] < 128 * (turn + 1)) yield_();
  warp_wait();
}
void group_before(int group) { ++current->cta->let[group]; }

void bulk_order(void* to, const ph_map& map, long long row, long long column, void* place) {
  Bulk& bulk = current->cta->bulks.at(place);
  bulk.boxes.push_back({offset_in_cta(to), &map, row, column});
  bulk.ordered += map.words[4] * map.words[5] * 2;
}
void bulk_wait(void* place, unsigned parity) {
  while ((current->cta->bulks.at(place).phase & 1) == parity) {
    Bulk& bulk = current->cta->bulks.at(place);
    if (bulk.expected && bulk.ordered == bulk.expected) {
      for (const Box& box : bulk.boxes) bulk_happens(box);
      bulk.boxes.clear();
      bulk.expected = bulk.ordered = 0;
      ++bulk.phase;
    } else yield_();
  }
}
void bulk_open(void* place, unsigned count) {
  if (current->cta->bulks.count(place)) abort();  // still open
  current->cta->bulks[place].count = count;
}
void bulk_done(void* place) {
  Bulk& bulk = current->cta->bulks.at(place);
  if (++bulk.arrived == bulk.count) { bulk.arrived = 0; ++bulk.phase; }
}
void bulk_close(void* place) { current->cta->bulks.erase(place); }
void bulk_expect(void* place, unsigned bytes) { current->cta->bulks.at(place).expected = bytes; }

void new_fibers(unsigned count, void (*body)()) {
  kernel_body = body;
  alone.clear();
  alone = std::vector<Fiber>(count);
  for (unsigned n = 0; n < count; ++n) alone[n].thread = n;
}
bool fiber_goes_on(unsigned number) {
  go_on(alone[number]);
  return !alone[number].done;
}
unsigned this_fiber() { return current->thread; }

long long run_grid(void (*body)(), unsigned gx, unsigned gy, unsigned gz, unsigned threads, size_t shared, int order, long long limit) {
  kernel_body = body;
  gridDim.x = gx; gridDim.y = gy; gridDim.z = gz; blockDim.x = threads;
  threads_of_cta = threads;
  const size_t blocks = (size_t)gx * gy * gz;
  std::vector<Cta> ctas(blocks);
  std::vector<Fiber> fibers(blocks * threads);
  for (size_t b = 0; b < blocks; ++b) {
    Cta& c = ctas[b];
    c.block.x = b % gx; c.block.y = b / gx % gy; c.block.z = b / gx / gy;
    c.shared.assign(shared + 64, 0xcd);
    c.exchange.resize(threads * 16);
    c.warp_arrived.resize(threads / 32); c.warp_generation.resize(threads / 32);
    for (unsigned t = 0; t < threads; ++t) {
      Fiber& f = fibers[b * threads + t];
      f.cta = &c; f.thread = t;
    }
  }
  std::vector<size_t> turn(fibers.size());
  for (size_t i = 0; i < turn.size(); ++i) turn[i] = order == 1 ? turn.size() - 1 - i : i;
  unsigned state = order;
  auto random = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
  if (order > 1)
    for (size_t i = turn.size() - 1; i > 0; --i) {
      const size_t j = (((size_t)random() << 16) ^ random()) % (i + 1), kept = turn[i];
      turn[i] = turn[j];
      turn[j] = kept;
    }
  size_t alive = fibers.size();
  std::vector<bool> resting(fibers.size() / 32 + 1);
  for (long long round = 0; round < limit; ++round) {
    if (!alive) return round;
    // Order 2 and above: warps run unevenly, some stand still for a while as others run ahead.
    if (order > 1 && round % 6 == 0)
      for (size_t w = 0; w < resting.size(); ++w) resting[w] = random() % 2 != 0;
    for (size_t i : turn) {
      Fiber& f = fibers[i];
      if (f.done || (order > 1 && resting[i / 32])) continue;
      threadIdx.x = f.thread; blockIdx = f.cta->block;
      go_on(f);
      if (f.done) --alive;
    }
  }
  return -1;
}
