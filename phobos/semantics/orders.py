"""What an author answers where it is not known whether two kernels of one launch need an order."""

from __future__ import annotations

from typing import Literal

Order = Literal["ask", "barrier", "independent"]
ORDERS: tuple[Order, ...] = ("ask", "barrier", "independent")
"""Refuse, and say what is not known; put a grid barrier between the two; or believe that they need none. Where it is
known, none of them changes anything."""


def order_called(name: str) -> Order:
    """An answer by its name. Raises ValueError, in the user's terms."""
    for order in ORDERS:
        if order == name:
            return order
    raise ValueError(f"no order is called {name!r}: choose {', '.join(ORDERS)}")
