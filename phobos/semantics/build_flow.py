"""What only the finished program shows."""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.syntax import tree


def after_building(b: Build, node: tree.Kernel | tree.Function, body: ir.Block) -> None:
    pass
