"""What the Python API raises. Every one is a `PhobosError`; none is raised for a defect of this project."""

from __future__ import annotations

from collections.abc import Sequence

from phobos.diagnostic import Diagnostic


class PhobosError(Exception):
    """Base of all errors of this package. Each survives pickling: a pool of processes hands them back whole."""

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[PhobosError], said: tuple[object, ...], held: dict[str, object]) -> PhobosError:
    error = kind.__new__(kind, *said)
    error.__dict__.update(held)
    return error


class InputError(PhobosError):
    """A command, or `phobos.load`, could not do its work: an unreadable file, a bad option or configuration. Says what
    to do instead."""


class CheckError(PhobosError):
    """The checker proved an error, so nothing was launched. `diagnostics` holds what it said."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class LaunchError(PhobosError):
    """A launch was refused before anything ran.

    `kind` is the fault kind of `docs/cli.md` (`aligned-broken`, `not-resident`, ...) where the refusal is one,
    else None (a wrong argument, say).
    """

    def __init__(self, message: str, kind: str | None = None, diagnostic: Diagnostic | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.diagnostic = diagnostic


class KernelFault(PhobosError):
    """A kernel went wrong while it ran. `kind`, where (`diagnostic`) and which blocks."""

    def __init__(self, message: str, kind: str, diagnostic: Diagnostic | None, blocks: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.kind = kind
        self.diagnostic = diagnostic
        self.blocks = tuple(blocks)
