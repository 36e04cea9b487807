"""Layouts: which elements of a tile each thread owns.

A thread has a place (down, along) in a grid of threads over the tile. In a plain layout `along` counts `across`
neighbouring threads, or warps stand in the grid as patches of `patch` places along a row, so that a product's warp
reads few different cells of either operand; lanes go two down, then along, then down again, so that of either operand
a lane reads what one of the next two reads, and half a warp's 16-byte reads of shared memory are one access. A thread
owns `row_group` consecutive rows, then again as many a stride further, and so on; and columns likewise in vectors. In
a fragment layout (`warps_down` > 0) warps stand in a grid over the tile, one below the other first, and the 32 threads
of a warp hold rows and columns as the tensor-core instructions deal them out: a row of eight by four threads, two
neighbouring columns each. Rows go round the warps in sixteens, so that the four warps of a warpgroup hold 64 in a row.
One row is the same in every thread; so is one column. A variable's registers are numbered row by row, vectors
innermost.
"""

from __future__ import annotations

from phobos.value import value

WARP = 32
FRAGMENT_ROWS, FRAGMENT_LANES = 8, 4  # rows of a warp's fragment, and the lanes along each
PIECE_ROWS = 16  # of one instruction, two fragments


@value
class Layout:
    rows: int
    columns: int
    threads: int  # of the CTA
    across: int  # threads along a row
    row_group: int  # consecutive rows of a thread
    vector: int  # consecutive columns of a thread
    warps_down: int = 0  # of a fragment layout
    warps_across: int = 0
    patch: int = 0  # lanes of a warp along a row, where warps are patches of the grid of threads

    @property
    def is_fragment(self) -> bool:
        return self.warps_down > 0

    @property
    def downs(self) -> int:
        if self.is_fragment:
            return FRAGMENT_ROWS * self.warps_down
        return self.threads // self.across

    @property
    def piece_stride(self) -> int:
        """Rows from one sixteen of a warp's rows to its next."""
        return PIECE_ROWS * self.warps_down

    @property
    def pieces_down(self) -> int:
        """Sixteens of rows that a warp holds."""
        return -(-self.rows // self.piece_stride)

    @property
    def warp_columns(self) -> int:
        unit = FRAGMENT_LANES * self.vector
        return -(-self.columns // (unit * self.warps_across)) * unit

    @property
    def row_stride(self) -> int:
        return self.downs * self.row_group

    @property
    def column_stride(self) -> int:
        return FRAGMENT_LANES * self.vector if self.is_fragment else self.across * self.vector

    @property
    def row_steps(self) -> int:
        if self.rows == 1:
            return 1
        return 2 * self.pieces_down if self.is_fragment else -(-self.rows // self.row_stride)

    @property
    def column_steps(self) -> int:
        if self.columns == 1:
            return 1
        return self.warp_columns // self.column_stride if self.is_fragment else -(-self.columns // self.column_stride)

    @property
    def row_registers(self) -> int:
        return 1 if self.rows == 1 else self.row_steps * self.row_group

    @property
    def column_registers(self) -> int:
        return 1 if self.columns == 1 else self.column_steps * self.vector

    @property
    def registers(self) -> int:
        return self.row_registers * self.column_registers

    @property
    def rows_exact(self) -> bool:
        """No thread has a row outside the tile."""
        if self.is_fragment:
            return self.rows == 1 or self.rows % self.piece_stride == 0
        return self.rows == 1 or self.rows % self.row_stride == 0

    @property
    def columns_exact(self) -> bool:
        if self.is_fragment:
            return self.columns == 1 or self.columns == self.warp_columns * self.warps_across
        return self.columns == 1 or self.columns % self.column_stride == 0

    @property
    def lanes_along(self) -> int:
        """Neighbouring threads of a warp that hold one row together."""
        return FRAGMENT_LANES if self.is_fragment else self.patch or min(self.across, WARP)

    @property
    def warps_along(self) -> int:
        """Warps that hold one row together."""
        return self.warps_across if self.is_fragment else self.across // self.lanes_along

    @property
    def warps_used(self) -> int:
        """Warps that hold different elements; any others repeat what these do."""
        return self.warps_down * self.warps_across if self.is_fragment else self.threads // WARP

    @property
    def replicated(self) -> bool:
        """Several threads hold one element."""
        return (
            (self.rows == 1 and self.downs > 1)
            or (self.columns == 1 and self.across > 1)
            or self.warps_used * WARP < self.threads
        )

    @property
    def key(self) -> tuple[object, ...]:
        return (
            self.rows, self.columns, self.across, self.row_group, self.vector, self.warps_down, self.warps_across,
            self.patch,
        )  # fmt: skip
