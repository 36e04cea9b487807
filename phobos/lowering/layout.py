"""Layouts: which elements of a tile each thread owns.

A thread has a place (down, along): its index in the CTA divided by `across`, and the rest. It owns rows
`down * row_group + 0 .. row_group - 1`, then again `downs * row_group` rows further, and so on; and columns
likewise in vectors. One row is the same in every thread; so is one column. A variable's registers are numbered
row by row, vectors innermost.
"""

from __future__ import annotations

from phobos.value import value


@value
class Layout:
    rows: int
    columns: int
    threads: int  # of the CTA
    across: int  # threads along a row
    row_group: int  # consecutive rows of a thread
    vector: int  # consecutive columns of a thread
    kind: str = "plain"  # or "mma": the fragment of a tensor-core accumulator

    @property
    def downs(self) -> int:
        return self.threads // self.across

    @property
    def row_stride(self) -> int:
        return self.downs * self.row_group

    @property
    def column_stride(self) -> int:
        return self.across * self.vector

    @property
    def row_steps(self) -> int:
        return 1 if self.rows == 1 else -(-self.rows // self.row_stride)

    @property
    def column_steps(self) -> int:
        return 1 if self.columns == 1 else -(-self.columns // self.column_stride)

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
        return self.rows == 1 or self.rows % self.row_stride == 0

    @property
    def columns_exact(self) -> bool:
        return self.columns == 1 or self.columns % self.column_stride == 0

    @property
    def replicated(self) -> bool:
        """Several threads hold one element."""
        return (self.rows == 1 and self.downs > 1) or (self.columns == 1 and self.across > 1)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.rows, self.columns, self.across, self.row_group, self.vector, self.kind)
