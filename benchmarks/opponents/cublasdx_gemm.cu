// C = A B with cuBLASDx: its block-wide product over a ring of shared-memory stages that its own copies fill (cp.async).
// Row-major, M, N and K multiples of the tile. Macros: TYPE, TOTAL, BM, BN, BK, STAGES, THREADS.
#include <cublasdx.hpp>

using Blas = decltype(cublasdx::Size<BM, BN, BK>() + cublasdx::Precision<TYPE, TYPE, TOTAL>() +
                      cublasdx::Type<cublasdx::type::real>() + cublasdx::Function<cublasdx::function::MM>() +
                      cublasdx::Arrangement<cublasdx::row_major, cublasdx::row_major, cublasdx::row_major>() +
                      cublasdx::MaxAlignment() + cublasdx::Block() + cublasdx::BlockDim<THREADS>() +
                      cublasdx::SM<900>());

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(const TYPE* a, const TYPE* b, TYPE* c, int m, int n, int k) {
  extern __shared__ __align__(128) unsigned char shared[];
  const auto left_layout = Blas::suggest_layout_smem_a();
  const auto right_layout = Blas::suggest_layout_smem_b();
  constexpr int left_bytes = (cute::cosize(decltype(left_layout.layout){}) * sizeof(TYPE) + 127) / 128 * 128;
  constexpr int right_bytes = (cute::cosize(decltype(right_layout.layout){}) * sizeof(TYPE) + 127) / 128 * 128;
  constexpr int stage_bytes = left_bytes + right_bytes;
  const auto stage = [&](int slot) {
    unsigned char* at = shared + slot * stage_bytes;
    return cute::make_tuple(cublasdx::make_tensor((TYPE*)at, left_layout),
                            cublasdx::make_tensor((TYPE*)(at + left_bytes), right_layout));
  };
  const TYPE* const rows = a + (long long)blockIdx.y * BM * k;
  const TYPE* const columns = b + blockIdx.x * BN;
  const auto fetch = [&](int round, int slot) {
    auto left = cute::make_tensor(cute::make_gmem_ptr(rows + round * BK),
                                  cute::make_layout(cute::make_shape(cute::Int<BM>{}, cute::Int<BK>{}), cute::make_stride(k, cute::Int<1>{})));
    auto right = cute::make_tensor(cute::make_gmem_ptr(columns + (long long)round * BK * n),
                                   cute::make_layout(cute::make_shape(cute::Int<BK>{}, cute::Int<BN>{}), cute::make_stride(n, cute::Int<1>{})));
    auto to = stage(slot);
    cublasdx::copy<Blas, 16>(left, cute::get<0>(to));
    cublasdx::copy<Blas, 16>(right, cute::get<1>(to));
  };
  auto partition = Blas::suggest_partitioner();
  auto sums = partition.make_accumulator_fragment();
  cublasdx::clear(sums);
  const int rounds = k / BK;
#pragma unroll
  for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
    if (ahead < rounds) fetch(ahead, ahead);
    cute::cp_async_fence();
  }
  int slot = 0;
  for (int round = 0; round < rounds; ++round) {
    cute::cp_async_wait<STAGES - 2>();
    __syncthreads();
    if (round + STAGES - 1 < rounds) fetch(round + STAGES - 1, slot == 0 ? STAGES - 1 : slot - 1);
    cute::cp_async_fence();
    auto now = stage(slot);
    Blas().execute(cute::get<0>(now), cute::get<1>(now), sums);
    slot = slot == STAGES - 1 ? 0 : slot + 1;
  }
  auto out = cute::make_tensor(cute::make_gmem_ptr(c + (long long)blockIdx.y * BM * n + blockIdx.x * BN),
                               cute::make_layout(cute::make_shape(cute::Int<BM>{}, cute::Int<BN>{}), cute::make_stride(n, cute::Int<1>{})));
  auto rounded = cute::make_fragment_like<TYPE>(sums);
#pragma unroll
  for (int at = 0; at < cute::size(sums); ++at) rounded(at) = TYPE(sums(at));
  cublasdx::copy_fragment<16>(rounded, out, partition);
}
