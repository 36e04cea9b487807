// C = A B with CUTLASS: f16 in and out with f32 sums by its collectives for sm_90 (TMA, warp-specialised, wgmma), and f32
// on the ordinary units by its multistage kernel (cp.async). Row-major. Compiled by nvcc into a shared library.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

using Row = cutlass::layout::RowMajor;

#ifdef HALF
using Half = cutlass::half_t;
using Tile = cute::Shape<cute::Int<BM>, cute::Int<BN>, cute::Int<BK>>;
using Cluster = cute::Shape<cute::Int<CLUSTER_M>, cute::Int<CLUSTER_N>, cute::_1>;
#ifdef PINGPONG
using Main = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
using Last = cutlass::epilogue::TmaWarpSpecialized;
#else
using Main = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
using Last = cutlass::epilogue::TmaWarpSpecializedCooperative;
#endif
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto,
    float, float, void, Row, 8, Half, Row, 8, Last>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, Row, 8, Half, Row, 8, float, Tile, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    Main>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

extern "C" int run(const void* a, const void* b, void* c, int m, int n, int k, void* stream) {
  using namespace cutlass;
  auto at = make_cute_packed_stride(typename Kernel::StrideA{}, cute::make_shape(m, k, 1));
  auto bt = make_cute_packed_stride(typename Kernel::StrideB{}, cute::make_shape(n, k, 1));
  auto ct = make_cute_packed_stride(typename Kernel::StrideD{}, cute::make_shape(m, n, 1));
  typename Gemm::Arguments arguments{gemm::GemmUniversalMode::kGemm, {m, n, k, 1},
                                     {(const Half*)a, at, (const Half*)b, bt}, {{1.0f, 0.0f}, nullptr, {}, (Half*)c, ct}};
  arguments.scheduler.max_swizzle_size = SWIZZLE;
  static Gemm gemm;
  if (gemm.can_implement(arguments) != Status::kSuccess) return 1;
  if (Gemm::get_workspace_size(arguments) != 0) return 2;
  if (gemm.initialize(arguments, nullptr, (cudaStream_t)stream) != Status::kSuccess) return 3;
  return (int)gemm.run((cudaStream_t)stream);
}
#else
using Gemm = cutlass::gemm::device::Gemm<
    float, Row, float, Row, float, Row, float, cutlass::arch::OpClassSimt, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<BM, BN, BK>, cutlass::gemm::GemmShape<WM, WN, BK>, cutlass::gemm::GemmShape<1, 1, 1>,
    cutlass::epilogue::thread::LinearCombination<float, 1, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<SWIZZLE>, STAGES, 1, 1>;

extern "C" int run(const void* a, const void* b, void* c, int m, int n, int k, void* stream) {
  Gemm gemm;
  return (int)gemm({{m, n, k}, {(const float*)a, k}, {(const float*)b, n}, {(float*)c, n}, {(float*)c, n}, {1.0f, 0.0f}}, nullptr,
                   (cudaStream_t)stream);
}
#endif
