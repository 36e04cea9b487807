"""What tuning found, used by a launch: which winner fits the arguments, and what is said of it in the plan.

A winner is used where the caller fixes nothing otherwise than it was tuned. Where it cannot be launched with these
very arguments (a promise that its tiles break, say), the kernel runs as if it had not been tuned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from phobos.errors import CheckError, LaunchError
from phobos.runtime.device import number_of
from phobos.runtime.faults import said_of
from phobos.runtime.placing import ASKED
from phobos.value import replace, value

if TYPE_CHECKING:
    from phobos.runtime.binding import Bound
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions
    from phobos.runtime.plan import Plan

T = TypeVar("T")


@value
class Choice:
    """`options` are the caller's with what was tuned filled in; `source` says where it comes from, or why it is not
    used. `sizes_grid`: the number of blocks or workers is the winner's."""

    options: LaunchOptions
    source: str
    sizes_grid: bool


def choice(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Choice | None:
    """The winner for a launch, or None."""
    from phobos.runtime.tuning import keeping
    from phobos.runtime.tuning.applying import applied

    if not keeping.folder().is_dir():
        return None
    key = kernel.key
    own = keeping.size_class(bound.dims)
    for winner in keeping.winners(key, keeping.card(bound.device)):
        constants = {**winner.held, **dict(winner.variant.constants)}
        if keeping.size_class(winner.sizes) != own or not _agrees(bound, options, winner.held, constants):
            continue
        variant = winner.variant
        grid = (options.grid,) if isinstance(options.grid, int) else options.grid
        asked = None if options.schedule is None else options.schedule.replace("_", "-")
        if grid != winner.grid or asked not in (None, variant.schedule):
            continue
        if (options.l2_group or variant.l2_group) != variant.l2_group:
            continue
        try:
            program = kernel.analysed(constants)[1].program
        except (LaunchError, CheckError):
            continue  # constants that this kernel cannot have: something has been at the file
        sizes = {name: size for name, size in bound.sizes.items() if name not in program.constants}
        chosen = applied(options, variant, constants, program, sizes, _multiprocessors(bound, options))
        what = "constants" if variant.constants else "schedule and grid"
        return Choice(chosen, f"{what} from tuning, {winner.date}: {variant.label}", variant.per_sm is not None)
    return None


def attempt(
    kernel: Kernel, bound: Bound, options: LaunchOptions, launch: Callable[[LaunchOptions], T]
) -> tuple[T, Choice | None]:
    """`launch` with what was tuned, or without where there is nothing or it is refused; and what `noted` says of it.

    `bound` are the arguments at the caller's own constants.
    """
    found = choice(kernel, bound, options) if options.tuned else None
    if found is None:
        return launch(options), None
    try:
        return launch(found.options), found
    except (LaunchError, CheckError) as error:
        unused = Choice(options, f"{found.source} (not used: {said_of(error)})", False)
        return launch(options), unused


def noted(plan: Plan, found: Choice | None) -> Plan:
    """The plan with what is said of tuning."""
    if found is None:
        return plan
    source = "as tuned" if found.sizes_grid and plan.grid_source == ASKED else plan.grid_source
    return replace(plan, notes=(*plan.notes, found.source), grid_source=source)


def _agrees(bound: Bound, options: LaunchOptions, held: dict[str, int], constants: dict[str, int]) -> bool:
    """Whether the caller's constants are those of the winner, where the caller says something, or holds them."""
    own = {name: constant.value for name, constant in bound.program.constants.items()}
    given = dict(options.constants)
    return all(own.get(name) == number for name, number in held.items()) and all(
        constants.get(name) == number for name, number in given.items()
    )


def _multiprocessors(bound: Bound, options: LaunchOptions) -> int:
    if bound.device == "cpu":
        return 1
    from phobos.runtime.cuda import driver

    number = number_of(bound.device)
    with driver.on(number):
        return max(driver.multiprocessors(number) - options.reserved_sms, 1)
