"""Print what a kernel compiles to: CUDA C++, PTX, machine code, the facts behind it, or its contract with a launcher.

No GPU is needed. PTX, cubin and SASS need the compiler library (NVRTC); SASS also `cuobjdump` or `nvdisasm`.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from phobos.check.project import write
from phobos.cli.arguments import add_order, add_schedule, add_set, files_apart, kernel_name, order_for
from phobos.cli.launches import demand_names, one_of
from phobos.cli.output import document
from phobos.errors import InputError

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel

EXAMPLE = """
phobos emit examples/staged.ph --format cuda
phobos emit gemm.ph --kernel gemm --format ptx --target h200 --set BM=128 -o gemm.ptx
phobos emit staged.ph --format contract
"""

FORMATS = ("cuda", "ptx", "cubin", "sass", "facts", "contract")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .ph file")
    parser.add_argument(
        "--kernel", type=kernel_name, metavar="K", help="which kernel, where the file has several; K1+K2: their fusion"
    )
    add_order(parser)
    parser.add_argument("--format", choices=FORMATS, default="cuda", help="what to print (default cuda)")
    parser.add_argument("--target", default="sm_90a", metavar="T", help="a card or an architecture (default sm_90a)")
    add_set(parser, "a constant, or an extent to specialise on")
    add_schedule(parser)
    parser.add_argument("-o", "--output", metavar="F", help="write to a file instead of stdout")


def run(arguments: argparse.Namespace) -> int:
    from phobos.codegen import cards
    from phobos.runtime.kernel import load

    if arguments.output is not None:
        files_apart({"-o": arguments.output}, [arguments.file])
    try:
        arch = cards.target(arguments.target).arch
    except cards.UnknownTarget as error:
        raise InputError(str(error)) from None
    kernel = one_of(load(arguments.file), arguments.file, arguments.kernel, order_for(arguments))
    demand_names((kernel,), dict(arguments.set))
    data = _made(kernel, arguments.format, arch, dict(arguments.set), arguments.schedule, arguments.l2_group)
    if arguments.output is not None:
        write(arguments.output, data)
    elif arguments.format == "cubin" and sys.stdout.isatty():
        raise InputError("a cubin is binary: give -o FILE, or send it to a file")
    else:
        document(data)
    return 0


def _made(
    kernel: Kernel, form: str, arch: str, constants: dict[str, int], schedule: str | None, l2_group: int | None
) -> bytes:
    from functools import partial

    from phobos.errors import CheckError, LaunchError
    from phobos.lowering.options import Options
    from phobos.runtime import gate
    from phobos.runtime.compiling import build, lowered_for, spelled
    from phobos.runtime.scheduling import form_by_text, schedule_for
    from phobos.semantics.fusion import parts_of
    from phobos.semantics.multiples import multiples_of

    program = kernel.analysed()[1].program
    sizes = {name: number for name, number in constants.items() if name not in program.constants}
    module, unit = kernel.analysed({name: n for name, n in constants.items() if name not in sizes})
    try:
        gate.demand_program(module, unit, kernel.name)
    except CheckError as error:
        raise InputError(str(error)) from None
    multiples = multiples_of(program, sizes)
    order = schedule_for(schedule, l2_group)
    options = Options(
        arch=arch, multiples=multiples, form=form_by_text(unit.program, order, schedule is not None)
    )  # fmt: skip

    line_of = partial(module.line, unit)
    if form == "cuda":
        return spelled(module, unit, options).text.encode()
    if form == "facts":
        from phobos.codegen.facts import facts_of
        from phobos.semantics.report import report

        text = report(unit.program, line_of)
        for part in parts_of(unit.program):
            try:
                lowered = lowered_for(module, unit, part, options)
                decided = json.dumps(facts_of(lowered, line_of), indent=2, ensure_ascii=False)
            except LaunchError as error:
                decided = f"  none: {error}"
            text += f"\nlowering for {arch}\n{decided}\n"
        return text.encode()
    if form == "contract":
        from phobos.codegen import nvrtc
        from phobos.codegen.contract import contract_of

        emitted = spelled(module, unit, options)
        resources = build(module, unit, options).resources if nvrtc.location() is not None else None
        return _json(contract_of(unit.program, emitted, resources, options, line_of))
    made = build(module, unit, options)
    if form == "ptx":
        return made.ptx.encode()
    return made.cubin if form == "cubin" else _disassembled(made.cubin)


def _json(made: Any) -> bytes:
    return (json.dumps(made, indent=2, ensure_ascii=False) + "\n").encode()


def _disassembled(cubin: bytes) -> bytes:
    import shutil
    import subprocess
    import tempfile
    from pathlib import Path

    for tool, flags in (("cuobjdump", ["--dump-sass"]), ("nvdisasm", ["-c"])):
        path = shutil.which(tool)
        if path is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kernel.cubin"
            file.write_bytes(cubin)
            done = subprocess.run([path, *flags, str(file)], capture_output=True, timeout=60)
        if done.returncode != 0:
            raise InputError(f"{tool} failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout
    raise InputError(
        "machine code is read by `cuobjdump` or `nvdisasm`, and neither is on PATH: they come with the CUDA toolkit "
        "(the package cuda-cuobjdump); `--format cubin -o FILE` writes what they would read"
    )
