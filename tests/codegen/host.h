// What the text that the emitter writes finds in place of a GPU: every GPU thread is a fiber of one processor thread, and
// waits hand over to the next one. Enough for that text; not a general emulator. host.cpp does the work and is compiled
// once, so that a kernel's text compiles in a fraction of a second.
#include <cstdint>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // which would make up a third of what a kernel takes to compile
#include <cmath>
#include <cstring>
#include <limits>

#define EXPORTED extern "C" __attribute__((visibility("default")))

inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
#define __device__
#define __forceinline__ inline
#define __noinline__
#ifdef ALIGNED  // where accesses that are not are trapped
#define __align__(n) __attribute__((aligned(n)))
#else
#define __align__(n)
#endif
#define __launch_bounds__(...)
#define __global__
#define __grid_constant__
struct alignas(8) ph_map { unsigned long long words[16]; };

struct Index { unsigned x = 0, y = 0, z = 0; };
extern Index threadIdx, blockIdx, gridDim, blockDim;

// Runs the grid; gives the number of scheduling rounds, or -1 when nothing ended within `limit` rounds. The order in which
// fibers run is a parameter, so that a missing wait shows as a wrong result in some order.
long long run_grid(void (*body)(), unsigned gx, unsigned gy, unsigned gz, unsigned threads, size_t shared, int order, long long limit);

// Fibers alone, for who schedules them: numbered from 0. `fiber_goes_on` lets one run until it hands over, and gives
// whether there is more of it.
void new_fibers(unsigned count, void (*body)());
bool fiber_goes_on(unsigned number);
unsigned this_fiber();

void yield_();
unsigned char* shared_of_cta();
unsigned offset_in_cta(const void* p);
int __syncthreads_or(int x);
inline void __syncthreads() { __syncthreads_or(0); }
void from_lane(const void* mine, void* its, size_t bytes, int mask);
template <typename T> T __shfl_xor_sync(unsigned, T x, int mask) {
  static_assert(sizeof(T) <= 16, "a slot is 16 bytes, so that warps keep apart whatever they exchange");
  T y;
  from_lane(&x, &y, sizeof(T), mask);
  return y;
}

inline unsigned half_bits(float x) { _Float16 h = (_Float16)x; unsigned short y; memcpy(&y, &h, 2); return y; }
inline unsigned brain_bits(float x) {
  unsigned b;
  memcpy(&b, &x, 4);
  return x != x ? 0x7fff : (b + 0x7fff + (b >> 16 & 1)) >> 16 & 0xffff;
}
inline float half_value(unsigned short x) { _Float16 h; memcpy(&h, &x, 2); return (float)h; }
inline float brain_value(unsigned short x) { const unsigned b = (unsigned)x << 16; float y; memcpy(&y, &b, 4); return y; }

// ldmatrix: lane 8 m + r names row r of piece m.
void fragments(unsigned* x, const void* row, bool turned, int pieces);
template <int N> void fragment(unsigned* x, const void* row, bool turned) { fragments(x, row, turned, N); }
// mma.m16n8k16 with f32 sums; `value` reads a half.
void multiply(float* upper, float* lower, const unsigned* a, const unsigned* b, float (*value)(unsigned short));

// cp.async: a copy happens only when somebody waits for its group.
void copy_order(void* to, const void* from, size_t bytes, bool inside);
void copies_end();
void copies_wait(size_t left);

// wgmma: happens only when somebody waits for its group. Each thread computes its own sums.
void group_tell(float* upper, float* lower, const unsigned* held, unsigned long long a, unsigned long long b, int columns, bool turned, float (*value)(unsigned short));
void group_end();
void group_wait(size_t left);
void group_after(int group);
void group_before(int group);

// Bulk copies: happen only when somebody waits at the place that they were ordered for.
void bulk_open(void* place, unsigned count);
void bulk_close(void* place);
void bulk_expect(void* place, unsigned bytes);
void bulk_order(void* to, const ph_map& map, long long row, long long column, void* place);
void bulk_wait(void* place, unsigned parity);
void bulk_done(void* place);

inline void __threadfence_system() {}
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
inline float __double2float_rz(double x) {
  const float y = (float)x;
  return std::fabs((double)y) > std::fabs(x) ? std::nextafter(y, 0.0f) : y;
}
inline float __int2float_rz(int x) { return __double2float_rz(x); }
inline float __ll2float_rz(long long x) {
  const float y = (float)x;
  return std::fabs((long double)y) > std::fabs((long double)x) ? std::nextafter(y, 0.0f) : y;
}
inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
inline unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
inline long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }
inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
