"""Mutants that change nothing, each with the reason why. A name is what `mutants.name_of` gives."""

OWN_CELLS = "each block keeps to its own cells of X on both sides of the barrier"
OWN_VALUE = "what the barrier changes places with is the block's own"
ANY_GRID = "it neither meets nor waits: any grid does all of the work"

EQUIVALENT: dict[str, str] = {
    "examples/staged.ph:27: drop a barrier: }": OWN_CELLS,
    "examples/staged.ph:27: move a barrier: }": OWN_CELLS,
    "tests/corpus/batchnorm.ph:26: move a barrier: grid_barrier(BAR)":
        "one barrier more a round: every block takes every round, and nobody reads before the last",
    "tests/corpus/bitonic_sort.ph:27: move a barrier: d /= 2": OWN_VALUE,
    "tests/corpus/breadth_first.ph:26: drop a barrier: if found == 0 {":
        "the next round counts in another cell of FOUND",
    "tests/corpus/breadth_first.ph:26: move a barrier: if found == 0 {":
        "all blocks have found the same, and the next round counts in another cell of FOUND",
    "tests/corpus/causal_attention.ph:15: remove @persistent: @autotune(D in [32], T in [32])": ANY_GRID,
    "tests/corpus/causal_suffix.ph:14: remove @persistent: @autotune(T in [64])": ANY_GRID,
    "tests/corpus/conjugate_gradient.ph:53: move a barrier: grid_barrier(BAR)": OWN_VALUE,
    "tests/corpus/gemm_banded_order.ph:10: remove @persistent: @autotune(BM in [32], BN in [32], BK in [16], GROU":
        ANY_GRID,
    "tests/corpus/grid_constant.ph:32: drop a barrier: }": OWN_CELLS,
    "tests/corpus/grid_constant.ph:18: drop a barrier: for t in range(ctx.block.x * TILE, N, BLOCKS * TIL": OWN_CELLS,
    "tests/corpus/grid_constant.ph:32: move a barrier: }": OWN_CELLS,
    "tests/corpus/grouped_experts.ph:13: remove @persistent: @autotune(BM in [16], BN in [16], BK in [16], EXPE":
        ANY_GRID,
    "tests/corpus/last_block_sum.ph:10: remove @persistent: @autotune(TILE in [512], SLOTS in [2048])":
        "nobody waits: the last block of any grid adds up",
    "tests/corpus/layernorm_rows.ph:11: remove @persistent: @autotune(TILE in [256, 1024])": ANY_GRID,
    "tests/corpus/lookback_scan.ph:13: remove @persistent: @autotune(TILE in [64])":
        "who waits has drawn a ticket, and so has the block that it waits for: that one runs",
    "tests/corpus/persistent_gemm.ph:10: remove @persistent: @autotune(BM in [32, 64], BN in [32, 64], BK in [1":
        ANY_GRID,
    "tests/corpus/power_iteration.ph:25: move a barrier: var whole = 0.0": OWN_VALUE,
    "tests/corpus/rmsnorm_aligned.ph:8: remove @persistent: @autotune(TILE in [256])": ANY_GRID,
    "tests/corpus/softmax_two_phase.ph:27: move a barrier: let filled = iota(SLOTS) < ctx.blocks.x": OWN_VALUE,
    "tests/corpus/split_k_semaphore.ph:12: remove @persistent: @autotune(BM in [32], BN in [32], BK in [16], SPLI":
        "nobody waits: the last part of a tile adds up, in any grid",
    "tests/corpus/split_k_two_launches.ph:11: remove @persistent: @autotune(BM in [32], BN in [32], BK in [16], SPLI":
        ANY_GRID,
    "tests/corpus/split_k_two_launches.ph:31: remove @persistent: @autotune(BM in [32], BN in [32], SPLITS in [4])":
        ANY_GRID,
    "tests/corpus/ticket_gemm.ph:13: remove @persistent: @autotune(BM in [32], BN in [32], BK in [16])": ANY_GRID,
    "tests/corpus/top_k.ph:32: move a barrier: var winner = 0": OWN_VALUE,
    "tests/corpus/top_k.ph:32: move a barrier: grid_barrier(BAR)": "a block reads its own place of PLACE alone",
    "tests/corpus/tree_reduction.ph:17: move a barrier: width = half": OWN_VALUE,
}
