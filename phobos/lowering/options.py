"""What a caller chooses of the code for a kernel. It stands apart, as a kernel that is kept needs nothing else here."""

from __future__ import annotations

from phobos.semantics.schedules import Form
from phobos.value import value

MULTIPLE = 16  # of an extent that is specialised on


@value
class Options:
    """What the caller chooses besides the program itself.

    `arch` - what it is compiled for. `vectors` - arrays begin at multiples of 16 bytes, so that wide accesses may
    be used. `debug` - point accesses are checked on the device. `guards` - so are the promises of `@aligned`.
    `pitched` - tensors whose rows lie further apart than they are long. `multiples` - extents known to be whole
    multiples of 16 at this launch, so that their rows may be read 16 bytes at a time. `form` - how virtual blocks are
    run, None where they are what is launched. `keep` - tensors whose tiles stay on chip across barriers, each with the
    most rounds that a block of this launch walks over them. `together` - so many CTAs of this launch share a
    multiprocessor, and may have all its registers among them (0: not known).
    """

    arch: str = "sm_90a"
    vectors: bool = True
    debug: bool = False
    guards: bool = False
    pitched: tuple[str, ...] = ()
    multiples: tuple[str, ...] = ()
    form: Form | None = None
    keep: tuple[tuple[str, int], ...] = ()
    together: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """Two options with one key are the same options."""
        return (
            self.arch, str(self.vectors), str(self.debug), str(self.guards), ",".join(self.pitched),
            ",".join(self.multiples), self.form.key if self.form else "",
            ",".join(f"{name}*{rounds}" for name, rounds in self.keep), str(self.together),
        )  # fmt: skip
