"""How an operand of tensor cores lies in shared memory: in panels, whose rows are swizzled.

A panel holds `width` neighbours of every row, 128 bytes where the row's length allows it, else 64, 32 or 16; the
pieces of 16 bytes in a row change places by the row's number. So eight rows of one column lie in eight different
groups of banks, whoever reads them, and the instructions of warpgroups and bulk copies know the order by its name.
"""

from __future__ import annotations

from phobos.value import value

ELEMENT_BYTES, PIECE_BYTES, ALIGNMENT_BYTES = 2, 16, 1024
WIDTHS = (64, 32, 16, 8)  # elements


@value
class Panels:
    """`lines` rows of `across` elements of 16 bits, as in the tensor, in panels of `width` columns."""

    lines: int
    across: int
    width: int

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of one panel."""
        return self.width * ELEMENT_BYTES

    @property
    def panel_bytes(self) -> int:
        return self.lines * self.row_bytes

    @property
    def bytes(self) -> int:
        """Of all panels, up to where the next operand may begin."""
        size = self.panel_bytes * (self.across // self.width)
        return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES

    @property
    def pieces(self) -> int:
        """Pieces of 16 bytes in a panel's row."""
        return self.row_bytes // PIECE_BYTES


def panels(lines: int, across: int, unbroken: int) -> Panels:
    """The widest panels that divide the rows and `unbroken`, a number of columns that must not share a panel."""
    width = next(width for width in WIDTHS if across % width == 0 and unbroken % width == 0)
    return Panels(lines, across, width)
