"""Device code for tensor cores: fragments and products of a warp, of a warpgroup, and bulk copies that feed them."""

from __future__ import annotations

TENSORCORES: dict[str, str] = {
    # --- tensor cores ------------------------------------------------------------------------------
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
    # --- warpgroups --------------------------------------------------------------------------------
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
    "ph_group_after": """\
// The warps of a warpgroup wait until those of the one before have let them go on.
__device__ __forceinline__ void ph_group_after(int group) {
  asm volatile("bar.sync %0, 256;" :: "r"(group) : "memory");
}
""",
    "ph_group_before": """\
__device__ __forceinline__ void ph_group_before(int group) {
  asm volatile("bar.arrive %0, 256;" :: "r"(group) : "memory");
}
""",
    "ph_there": """\
// Sums that have been waited for: nothing that is computed from them moves before this.
template <int N> __device__ __forceinline__ void ph_there(float (&x)[N]) {
#pragma unroll
  for (int n = 0; n < N; ++n) asm volatile("" : "+f"(x[n]) :: "memory");
}
""",
    "ph_uniform": """\
// The same number, of which the compiler knows then that all threads of a warp have it.
__device__ __forceinline__ int ph_uniform(int x) { return __shfl_sync(0xffffffffu, x, 0); }
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
    # --- bulk copies -------------------------------------------------------------------------------
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
}
