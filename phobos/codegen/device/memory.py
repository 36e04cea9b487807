"""Device code for what neighbouring cells and threads hold: wide accesses, copies past the registers, rows that several
threads combine."""

from __future__ import annotations

MEMORY: dict[str, str] = {
    # --- memory ------------------------------------------------------------------------------------
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
    # --- rows --------------------------------------------------------------------------------------
    "ph_larger": """\
struct ph_larger {
  template <typename T> __device__ T operator()(T a, T b) const { return a != a || a > b ? a : b; }
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
struct ph_first_largest {  // NaN is the largest
  template <typename T> __device__ ph_at<T> operator()(ph_at<T> a, ph_at<T> b) const {
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return b_is_nan ? b : a;
    return b.value > a.value || ((b.value == a.value || b_is_nan) && b.at < a.at) ? b : a;
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
}
