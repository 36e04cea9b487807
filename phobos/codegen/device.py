"""Device code that does not depend on the kernel: small functions, each included only where it is called.

Everything is our own text: nothing is included from a toolkit, so that NVRTC alone compiles it.
"""

from __future__ import annotations

import re

from phobos.codegen.device_shadows import SHADOWS

PIECES: dict[str, str] = {
    # --- scalars as they lie in memory ----------------------------------------------------------------
    "ph_f16": """\
struct ph_f16 { unsigned short bits; };
""",
    "ph_bf16": """\
struct ph_bf16 { unsigned short bits; };
""",
    "ph_f16_to": """\
__device__ __forceinline__ float ph_f16_to(ph_f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
""",
    "ph_to_f16": """\
__device__ __forceinline__ ph_f16 ph_to_f16(float x) {
  ph_f16 y;
#if __CUDA_ARCH__ >= 800  // as one of a pair: the conversion of one alone has a slower unit
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, 0f00000000, %1;" : "=r"(pair) : "f"(x));
  y.bits = (unsigned short)pair;
#else
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#endif
  return y;
}
__device__ __forceinline__ ph_f16 ph_to_f16(double x) {
  ph_f16 y;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x));
  return y;
}
__device__ __forceinline__ ph_f16 ph_to_f16(int x) {
  ph_f16 y;
  asm("cvt.rn.f16.s32 %0, %1;" : "=h"(y.bits) : "r"(x));
  return y;
}
__device__ __forceinline__ ph_f16 ph_to_f16(long long x) {
  ph_f16 y;
  asm("cvt.rn.f16.s64 %0, %1;" : "=h"(y.bits) : "l"(x));
  return y;
}
""",
    "ph_round_f16": """\
template <typename T> __device__ __forceinline__ float ph_round_f16(T x) { return ph_f16_to(ph_to_f16(x)); }
""",
    "ph_bf16_to": """\
__device__ __forceinline__ float ph_bf16_to(ph_bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
""",
    "ph_to_bf16": """\
__device__ __forceinline__ ph_bf16 ph_to_bf16(float x) {
  ph_bf16 y;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  const unsigned b = __float_as_uint(x);
  y.bits = x != x ? 0x7fff : (unsigned short)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
#endif
  return y;
}
""",
    "ph_round_bf16": """\
__device__ __forceinline__ float ph_round_bf16(float x) { return ph_bf16_to(ph_to_bf16(x)); }
""",
    # --- conversions ----------------------------------------------------------------------------------
    "ph_saturate": """\
// Toward zero; what does not fit becomes the nearest value that does, NaN becomes 0.
__device__ __forceinline__ long long ph_saturate(double x, double low, double high) {
  return x != x ? 0 : x <= low ? (long long)low : x >= high ? (long long)high : (long long)x;
}
""",
    "ph_saturate_i64": """\
__device__ __forceinline__ long long ph_saturate_i64(double x) {
  return x != x ? 0 : x <= -9223372036854775808.0 ? -9223372036854775807LL - 1
       : x >= 9223372036854775808.0 ? 9223372036854775807LL : (long long)x;
}
""",
    "ph_saturate_i32": """\
__device__ __forceinline__ int ph_saturate_i32(float x) {
  return x != x ? 0 : x <= -2147483648.0f ? -2147483647 - 1 : x >= 2147483648.0f ? 2147483647 : (int)x;
}
""",
    # --- arithmetic -----------------------------------------------------------------------------------
    "ph_shift_left": """\
template <typename T> __device__ __forceinline__ T ph_shift_left(T x, long long n) {
  return n < 0 || n >= (long long)(8 * sizeof(T)) ? T(0) : (T)((unsigned long long)x << n);
}
""",
    "ph_shift_right": """\
template <typename T> __device__ __forceinline__ T ph_shift_right(T x, long long n) {
  return n < 0 ? T(0) : x >> (n >= (long long)(8 * sizeof(T)) ? 8 * sizeof(T) - 1 : n);
}
""",
    "ph_divide": """\
// Toward zero; division by zero gives 0 here, a fault in the reference runtime.
template <typename T> __device__ __forceinline__ T ph_divide(T a, T b) {
  return b == 0 ? T(0) : b == -1 ? (T)(0 - a) : a / b;
}
""",
    "ph_remainder": """\
template <typename T> __device__ __forceinline__ T ph_remainder(T a, T b) { return b == 0 || b == -1 ? T(0) : a % b; }
""",
    "ph_max": """\
template <typename T> __device__ __forceinline__ T ph_max(T a, T b) { return a > b ? a : b; }
""",
    "ph_min": """\
template <typename T> __device__ __forceinline__ T ph_min(T a, T b) { return a < b ? a : b; }
""",
    "ph_exp": """\
// One multiplication and one instruction; what is too small for a normal number becomes 0.
__device__ __forceinline__ float ph_exp(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}
__device__ __forceinline__ double ph_exp(double x) { return exp(x); }
""",
    "ph_log": """\
__device__ __forceinline__ float ph_log(float x) { return __logf(x); }
__device__ __forceinline__ double ph_log(double x) { return log(x); }
""",
    "ph_sqrt": """\
__device__ __forceinline__ float ph_sqrt(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ double ph_sqrt(double x) { return sqrt(x); }
""",
    "ph_tanh": """\
__device__ __forceinline__ float ph_tanh(float x) { return tanhf(x); }
__device__ __forceinline__ double ph_tanh(double x) { return tanh(x); }
""",
    "ph_round": """\
__device__ __forceinline__ float ph_round(float x) { return rintf(x); }
__device__ __forceinline__ double ph_round(double x) { return rint(x); }
""",
    "ph_pow": """\
__device__ __forceinline__ float ph_pow(float x, float y) { return powf(x, y); }
__device__ __forceinline__ double ph_pow(double x, double y) { return pow(x, y); }
""",
    # --- memory ---------------------------------------------------------------------------------------
    "ph_vector": """\
template <typename T, int N> struct alignas(sizeof(T) * N) ph_vector { T at[N]; };
""",
    "ph_load": """\
// N neighbours in one access; `p` is a multiple of its size. (Small ones as words: a compiler takes them one by one.)
template <int N, typename T> __device__ __forceinline__ void ph_load(T* to, const T* p) {
  if constexpr (sizeof(T) < 4 && N * sizeof(T) >= 4) {
    typedef ph_vector<unsigned, N * sizeof(T) / 4> words;
    const words x = *reinterpret_cast<const words*>(p);
    memcpy(to, &x, sizeof(x));
  } else {
    const ph_vector<T, N> x = *reinterpret_cast<const ph_vector<T, N>*>(p);
#pragma unroll
    for (int n = 0; n < N; ++n) to[n] = x.at[n];
  }
}
""",
    "ph_apart": """\
// An offset as it is: the compiler may not take it apart to share its terms with others.
__device__ __forceinline__ long long ph_apart(long long n) {
  asm("" : "+l"(n));
  return n;
}
""",
    "ph_store": """\
template <int N, typename T> __device__ __forceinline__ void ph_store(T* p, const T* from) {
  if constexpr (sizeof(T) < 4 && N * sizeof(T) >= 4) {
    typedef ph_vector<unsigned, N * sizeof(T) / 4> words;
    words x;
    memcpy(&x, from, sizeof(x));
    *reinterpret_cast<words*>(p) = x;
  } else {
    ph_vector<T, N> x;
#pragma unroll
    for (int n = 0; n < N; ++n) x.at[n] = from[n];
    *reinterpret_cast<ph_vector<T, N>*>(p) = x;
  }
}
""",
    "ph_inside": """\
// 0 <= i < n
__device__ __forceinline__ bool ph_inside(long long i, long long n) {
  return (unsigned long long)i < (unsigned long long)n;
}
""",
    "ph_stray": """\
// Where a thread left a table, by which index, and how long the table is; `site` counts from 1.
struct ph_stray {
  int site;
  long long at, length;
};
""",
    "ph_within": """\
// The index of a table where it is inside; else 0, and the first that is not is kept to be reported.
__device__ __forceinline__ long long ph_within(long long i, long long n, int site, ph_stray& stray) {
  if (i >= 0 && i < n) return i;
  if (!stray.site) stray = {site, i, n};
  return 0;
}
""",
    "ph_copy_async": """\
// N neighbours from global to shared memory, past the registers; zeros where they are not `inside`.
template <int N, typename T> __device__ __forceinline__ void ph_copy_async(T* to, const T* from, bool inside) {
  constexpr int bytes = N * sizeof(T);
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(place), "l"(from), "r"(inside ? 16 : 0) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(place), "l"(from), "n"(bytes), "r"(inside ? bytes : 0) : "memory");
}
""",
    "ph_copies_end": """\
__device__ __forceinline__ void ph_copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }
""",
    "ph_copies_wait": """\
// Until at most N of the groups of copies are under way.
template <int N> __device__ __forceinline__ void ph_copies_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}
""",
    # --- rows -----------------------------------------------------------------------------------------
    "ph_larger": """\
struct ph_larger {
  template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
#if __CUDA_ARCH__ >= 800
  __device__ float operator()(float a, float b) const {
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
  }
#endif
};
""",
    "ph_sum": """\
struct ph_sum { template <typename T> __device__ T operator()(T a, T b) const { return a + b; } };
""",
    "ph_first_largest": """\
template <typename T> struct ph_at { T value; long long at; };
struct ph_first_largest {
  template <typename T> __device__ ph_at<T> operator()(ph_at<T> a, ph_at<T> b) const {
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
  }
};
""",
    "ph_exchange": """\
template <typename T> __device__ __forceinline__ T ph_exchange(T x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
""",
    "ph_exchange_at": """\
template <typename T> __device__ __forceinline__ ph_at<T> ph_exchange(ph_at<T> x, int mask) {
  return {__shfl_xor_sync(0xffffffffu, x.value, mask), __shfl_xor_sync(0xffffffffu, x.at, mask)};
}
""",
    "ph_combine": """\
// Every one of N neighbouring threads gets what all of them have.
template <int N, typename T, typename F> __device__ __forceinline__ T ph_combine(T x, F f) {
#pragma unroll
  for (int mask = N / 2; mask > 0; mask /= 2) x = f(x, ph_exchange(x, mask));
  return x;
}
""",
    # --- tensor cores ---------------------------------------------------------------------------------
    "ph_shared_address": """\
__device__ __forceinline__ unsigned ph_shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
""",
    "ph_fragment_4": """\
// Four 8 x 8 pieces: 16 rows of the left operand and 16 of K, or 16 columns of the right one. Each lane names one row
// of a piece; `turned`, what lies along a row is what neighbouring lanes shall hold.
template <typename T> __device__ __forceinline__ void ph_fragment_4(unsigned* x, const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(ph_shared_address(row)) : "memory");
}
""",
    "ph_fragment_4_turned": """\
template <typename T> __device__ __forceinline__ void ph_fragment_4_turned(unsigned* x, const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(ph_shared_address(row)) : "memory");
}
""",
    "ph_fragment_2": """\
template <typename T> __device__ __forceinline__ void ph_fragment_2(unsigned* x, const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(x[0]), "=r"(x[1]) : "r"(ph_shared_address(row)) : "memory");
}
""",
    "ph_fragment_2_turned": """\
template <typename T> __device__ __forceinline__ void ph_fragment_2_turned(unsigned* x, const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(x[0]), "=r"(x[1]) : "r"(ph_shared_address(row)) : "memory");
}
""",
    "ph_multiply_f16": """\
// 16 x 8 sums += 16 x 16 times 16 x 8.
__device__ __forceinline__ void ph_multiply_f16(
    float* upper, float* lower, const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1]) : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}
""",
    "ph_multiply_bf16": """\
__device__ __forceinline__ void ph_multiply_bf16(
    float* upper, float* lower, const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
""",
    "ph_pack_f16": """\
__device__ __forceinline__ unsigned ph_pack_f16(float low, float high) {
#if __CUDA_ARCH__ >= 800
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  return ph_to_f16(low).bits | (unsigned)ph_to_f16(high).bits << 16;
#endif
}
""",
    "ph_pack_bf16": """\
__device__ __forceinline__ unsigned ph_pack_bf16(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
""",
    # --- warpgroups -----------------------------------------------------------------------------------
    "ph_descriptor": """\
// An operand in shared memory: its first byte, and the bytes from panel to panel and from eight rows to the next.
template <int SWIZZLE> __device__ __forceinline__ unsigned long long ph_descriptor(
    const void* p, unsigned panel, unsigned rows) {
  return (unsigned long long)(ph_shared_address(p) >> 4) | (unsigned long long)(panel >> 4) << 16 |
         (unsigned long long)(rows >> 4) << 32 | (unsigned long long)SWIZZLE << 62;
}
""",
    "ph_others_see": """\
// What this thread stored in shared memory is there for tensor cores and bulk copies, after the next wait.
__device__ __forceinline__ void ph_others_see() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
""",
    "ph_others_see_all": """\
// The same, and what other blocks stored in the device's memory, too, before a barrier of the grid.
__device__ __forceinline__ void ph_others_see_all() { asm volatile("fence.proxy.async;" ::: "memory"); }
""",
    "ph_group_begin": """\
__device__ __forceinline__ void ph_group_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
""",
    "ph_group_end": """\
__device__ __forceinline__ void ph_group_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
""",
    "ph_group_wait": """\
// Until at most N of the warpgroup's products are at work.
template <int N> __device__ __forceinline__ void ph_group_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory");
}
""",
    # --- bulk copies ----------------------------------------------------------------------------------
    "ph_map": """\
struct alignas(64) ph_map { unsigned long long words[16]; };
""",
    "ph_bulk_open": """\
// A place where `count` threads say that they are through, and one of them how many bytes will come; others wait there.
__device__ __forceinline__ void ph_bulk_open(unsigned long long* place, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(ph_shared_address(place)), "r"(count) : "memory");
}
""",
    "ph_bulk_close": """\
__device__ __forceinline__ void ph_bulk_close(unsigned long long* place) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(ph_shared_address(place)) : "memory");
}
""",
    "ph_bulk_done": """\
__device__ __forceinline__ void ph_bulk_done(unsigned long long* place) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(ph_shared_address(place)) : "memory");
}
""",
    "ph_bulk_expect": """\
__device__ __forceinline__ void ph_bulk_expect(unsigned long long* place, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(ph_shared_address(place)), "r"(bytes) : "memory");
}
""",
    "ph_coordinate": """\
// What lies outside every extent that a map can hold stays outside.
__device__ __forceinline__ int ph_coordinate(long long i) {
  return i < -65536 ? -65536 : i > 2147418112 ? 2147418112 : (int)i;
}
""",
    "ph_bulk_copy": """\
// A box of a matrix to shared memory, swizzled as its map says; zeros where it lies outside.
__device__ __forceinline__ void ph_bulk_copy(
    void* to, const ph_map& map, long long row, long long column, unsigned long long* place) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3}], [%4];"
               :: "r"(ph_shared_address(to)), "l"(&map), "r"(ph_coordinate(column)), "r"(ph_coordinate(row)),
                  "r"(ph_shared_address(place)) : "memory");
}
""",
    "ph_bulk_wait": """\
__device__ __forceinline__ void ph_bulk_wait(unsigned long long* place, unsigned parity) {
  asm volatile("{\\n"
               ".reg .pred there;\\n"
               "again:\\n"
               "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\\n"
               "@!there bra again;\\n"
               "}" :: "r"(ph_shared_address(place)), "r"(parity) : "memory");
}
""",
    # --- waiting, and how a kernel stops --------------------------------------------------------------
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
    # --- tracing --------------------------------------------------------------------------------------
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
PIECES |= SHADOWS
"""In the order in which they must stand. A piece is called by its own name."""

_CALLED_AS = {"ph_exchange_at": ("ph_first_largest", "ph_exchange")}


def pieces_for(text: str) -> str:
    """The device code that `text` calls, and what that code calls."""
    wanted: set[str] = set()
    found = _names(text)
    while found:
        name = found.pop()
        if name in PIECES and name not in wanted:
            wanted.add(name)
            found |= _names(PIECES[name])
    for piece, needed in _CALLED_AS.items():
        if all(one in wanted for one in needed):
            wanted.add(piece)
    return "\n".join(text for name, text in PIECES.items() if name in wanted)


def _names(text: str) -> set[str]:
    return set(re.findall(r"\bph_[a-z0-9_]+", text))
