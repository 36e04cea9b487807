// A CUDA grid on one processor thread: every GPU thread is a fiber, and waits hand over to the next one.
// Enough for the text that the emitter writes; not a general emulator. The order in which fibers run is a
// parameter, so that a missing wait shows as a wrong result in some order.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <ucontext.h>
#include <vector>

inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __align__(n)
#define __launch_bounds__(...)
#define __global__

static const size_t STACK_BYTES = 256 * 1024;  // touched only as far as it is used

struct Index { unsigned x = 0, y = 0, z = 0; };
struct Cta {
  Index block;
  std::vector<unsigned char> shared;
  int arrived = 0, generation = 0, any = 0, last_any = 0, left = 0;
  std::vector<unsigned char> exchange;
  std::vector<int> warp_arrived, warp_generation;
};
struct Copy { void* to; const void* from; size_t bytes; bool inside; };
struct Fiber { std::vector<Copy> open; std::vector<std::vector<Copy>> under_way; ucontext_t at; Cta* cta = nullptr; unsigned thread = 0; bool done = false; void* stack = nullptr; ~Fiber() { free(stack); } };

static Index threadIdx, blockIdx, gridDim;
static unsigned threads_of_cta;
static Fiber* current;
static ucontext_t scheduler;
static void (*kernel_body)();

inline void yield_() { swapcontext(&current->at, &scheduler); }
inline unsigned char* shared_of_cta() {
  return (unsigned char*)(((uintptr_t)current->cta->shared.data() + 31) & ~(uintptr_t)31);
}

inline int __syncthreads_or(int x) {
  Cta& c = *current->cta;
  const int mine = c.generation;
  c.any |= x != 0;
  if (++c.arrived == (int)threads_of_cta) {
    c.arrived = 0; c.last_any = c.any; c.any = 0; ++c.generation;
  } else while (c.generation == mine) yield_();
  return c.last_any;
}
inline void __syncthreads() { __syncthreads_or(0); }
inline void warp_wait() {
  Cta& c = *current->cta;
  const unsigned w = current->thread / 32;
  const int mine = c.warp_generation[w];
  if (++c.warp_arrived[w] == 32) { c.warp_arrived[w] = 0; ++c.warp_generation[w]; }
  else while (c.warp_generation[w] == mine) yield_();
}
template <typename T> T __shfl_xor_sync(unsigned, T x, int mask) {
  Cta& c = *current->cta;
  static_assert(sizeof(T) <= 16, "a slot is 16 bytes, so that warps keep apart whatever they exchange");
  memcpy(&c.exchange[16 * current->thread], &x, sizeof(T));
  warp_wait();
  T y;
  memcpy(&y, &c.exchange[16 * ((current->thread & ~31u) | ((current->thread & 31u) ^ (unsigned)mask))], sizeof(T));
  warp_wait();
  return y;
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

// ldmatrix: lane 8 m + r names row r of piece m.
template <int N> void fragment(unsigned* x, const void* row, bool turned) {
  const unsigned short* rows[32];
  all_lanes((const unsigned short*)row, rows);
  const int lane = current->thread & 31;
  for (int m = 0; m < N; ++m) {
    unsigned short half[2];
    for (int e = 0; e < 2; ++e) half[e] = turned ? rows[8 * m + lane % 4 * 2 + e][lane / 4] : rows[8 * m + lane / 4][lane % 4 * 2 + e];
    x[m] = half[0] | (unsigned)half[1] << 16;
  }
}
// mma.m16n8k16 with f32 sums; `value` reads a half.
template <typename F> void multiply(float* upper, float* lower, const unsigned* a, const unsigned* b, F value) {
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

// cp.async: a copy happens only when somebody waits for its group.
inline void copies_end() {
  current->under_way.push_back(current->open);
  current->open.clear();
}
inline void copies_wait(size_t left) {
  while (current->under_way.size() > left) {
    for (const Copy& c : current->under_way.front()) c.inside ? (void)memcpy(c.to, c.from, c.bytes) : (void)memset(c.to, 0, c.bytes);
    current->under_way.erase(current->under_way.begin());
  }
}

inline void __threadfence_system() {}
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
inline unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }

static void enter() { kernel_body(); current->done = true; swapcontext(&current->at, &scheduler); }

// Runs the grid; gives the number of scheduling rounds, or -1 when nothing ended within `limit` rounds.
static long long run_grid(unsigned gx, unsigned gy, unsigned gz, unsigned threads, size_t shared, int order, long long limit) {
  gridDim.x = gx; gridDim.y = gy; gridDim.z = gz;
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
      f.cta = &c; f.thread = t; f.stack = malloc(STACK_BYTES);
      getcontext(&f.at);
      f.at.uc_stack.ss_sp = f.stack; f.at.uc_stack.ss_size = STACK_BYTES; f.at.uc_link = nullptr;
      makecontext(&f.at, enter, 0);
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
      current = &f; threadIdx.x = f.thread; blockIdx = f.cta->block;
      swapcontext(&scheduler, &f.at);
      if (f.done) --alive;
    }
  }
  return -1;
}
