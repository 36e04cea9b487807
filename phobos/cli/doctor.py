"""Say what works on this machine, and the one command that mends what does not: GPU, driver, compiler, editor, caches.

Nothing is changed, except by `--clear-cache` and `--clear-tuned`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from phobos.diagnostic import plural

EXAMPLE = """
phobos doctor
phobos doctor --json        for a bug report
phobos doctor --clear-cache
phobos doctor --clear-tuned  launches go back to default constants
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--clear-cache", action="store_true", help="remove the compiled kernels that are kept")
    parser.add_argument("--clear-tuned", action="store_true", help="forget what `phobos tune` found")


def run(arguments: argparse.Namespace) -> int:
    compiled, tuned = _cleared(arguments)
    findings = [
        _installation(), _reference(), _compiler(), *_devices(), _cupy(), _server(), _cache(compiled), _tuning(tuned)
    ]  # fmt: skip
    if arguments.json:
        from phobos import __version__

        about = {"phobos": __version__, "python": sys.version.split()[0], "platform": sys.platform}
        print(json.dumps({**about, "checks": findings}, indent=2))
        return 0
    width = max(len(found["part"]) for found in findings)
    for found in findings:
        print(f"{_MARKS[found['state']]:<8}{found['part']:<{width}}  {found['said']}")
        if found["mend"]:
            print(f"{'':<8}{'':<{width}}  to mend it: {found['mend']}")
    return 0


def _cleared(arguments: argparse.Namespace) -> tuple[str, str]:
    """Remove what is asked for; what to say of it, of compiled kernels and of tuning."""
    from phobos.codegen import cache
    from phobos.runtime.tuning import keeping

    compiled = f" ({plural(cache.clear(), 'file')} removed just now)" if arguments.clear_cache else ""
    tuned = f" ({plural(keeping.clear(), 'file')} removed just now)" if arguments.clear_tuned else ""
    return compiled, tuned


_MARKS = {"works": "ok", "absent": "-", "broken": "PROBLEM"}


def _found(part: str, state: str, said: str, mend: str = "", **more: Any) -> dict[str, Any]:
    return {"part": part, "state": state, "said": said, "mend": mend, **more}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _installation() -> dict[str, Any]:
    """Another package that installs `phobos`, too, hides this one or is hidden by it."""
    from phobos import __file__, __version__

    owners = sorted(set(metadata.packages_distributions().get("phobos", [])))
    others = [name for name in owners if name.lower().replace("_", "-") != "phobos-tools"]
    if others:
        return _found(
            "phobos", "broken", f"{', '.join(others)} installs a package `phobos` as well as phobos-tools",
            f"pip uninstall {' '.join(others)} && pip install --force-reinstall phobos-tools",
        )  # fmt: skip
    return _found("phobos", "works", f"{__version__} at {__file__}")


def _reference() -> dict[str, Any]:
    return _needing("reference", ("numpy", "ml_dtypes"), "kernels run without a GPU, on NumPy {}")


def _needing(part: str, packages: Sequence[str], said: str) -> dict[str, Any]:
    """A part that works where its packages are there; `said` names the version of the first."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        return _found(part, "broken", f"{', '.join(missing)} not installed", "pip install phobos-tools")
    return _found(part, "works", said.format(_version(packages[0])))


def _compiler() -> dict[str, Any]:
    from phobos.codegen import nvrtc

    try:
        major, minor = nvrtc.version()
        known = nvrtc.architectures()
    except nvrtc.CompilerMissing as error:
        state = "absent" if nvrtc.location() is None else "broken"
        return _found("compiler", state, str(error).split(";")[0], f"pip install 'phobos-tools[{_extra('nvrtc')}]'")
    said = f"NVRTC {major}.{minor} at {nvrtc.location()}, for sm_{known[0]} to sm_{known[-1]}"
    state, mend, of_driver = "works", "", _of_driver()
    if of_driver and major > of_driver[0]:
        state = "broken"
        said += f": its code is for drivers of CUDA {major}, and this one is for CUDA {of_driver[0]}.{of_driver[1]}"
        rid = "pip uninstall -y nvidia-cuda-nvrtc && " if _version("nvidia-cuda-nvrtc") else ""
        mend = f"{rid}pip install 'phobos-tools[{_extra('nvrtc')}]'"
    return _found("compiler", state, said, mend, version=[major, minor])


def _devices() -> list[dict[str, Any]]:
    from phobos.runtime.cuda import driver

    broken = driver.is_broken()
    try:
        why = driver.trouble()
        if not why:
            return _cards()
    except driver.DriverError as error:
        broken, why = True, f"the CUDA driver does not answer: {error}"
    mend = "nvidia-smi    says why; where the driver was updated, reboot" if broken else ""
    return [_found("GPU", "broken" if broken else "absent", f"{why}: kernels run in the reference runtime", mend)]


def _cards() -> list[dict[str, Any]]:
    from phobos.codegen import cards, nvrtc
    from phobos.runtime.cuda import driver

    said = "CUDA {}.{}".format(*driver.version())
    found = []
    for device in range(driver.device_count()):
        major, minor = driver.capability(device)
        arch = cards.arch_of(major, minor)
        sms = driver.attribute(device, driver.ATTRIBUTE_MULTIPROCESSORS)
        text = f"cuda:{device} {driver.device_name(device)}, {arch}, {sms} multiprocessors, driver for {said}"
        state, mend = "works", ""
        if (major, minor) < cards.OLDEST:
            state, text = "broken", f"{text}: kernels need {cards.arch_of(*cards.OLDEST)} or newer"
        elif not driver.attribute(device, driver.ATTRIBUTE_COOPERATIVE):
            state, text = "broken", f"{text}: it has no cooperative launches, which barriers need"
        else:
            try:
                if major * 10 + minor not in nvrtc.architectures():
                    state, text = "broken", f"{text}: the compiler does not know it"
                    mend = f"pip install --upgrade 'phobos-tools[{_extra('nvrtc')}]'"
            except nvrtc.CompilerMissing:
                pass
        found.append(_found("GPU", state, text, mend, name=driver.device_name(device), arch=arch))
    return found


def _extra(kind: str) -> str:
    """The extra whose CUDA the driver can run."""
    of_driver = _of_driver()
    return "gpu12" if of_driver and of_driver[0] < 13 else kind


def _of_driver() -> tuple[int, int] | None:
    """The CUDA that the driver is for, where there is one."""
    from phobos.runtime.cuda import driver

    try:
        return driver.version()
    except driver.DriverError:
        return None


def _cupy() -> dict[str, Any]:
    wheels = [name for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy") if _version(name)]
    if not wheels:
        return _found(
            "CuPy", "absent", "not installed: not needed for PyTorch arrays, nor for `phobos run`",
            f"pip install 'phobos-tools[{_extra('gpu')}]'",
        )  # fmt: skip
    if len(wheels) > 1:
        fitting = "cupy-cuda12x" if _extra("gpu") == "gpu12" else "cupy-cuda13x"
        return _found(
            "CuPy", "broken", f"{' and '.join(wheels)} are installed together and overwrite each other",
            f"pip uninstall -y {' '.join(wheels)} && pip install {fitting}",
        )  # fmt: skip
    said, of_driver = f"{wheels[0]} {_version(wheels[0])}", _of_driver()
    if wheels[0] == "cupy-cuda13x" and of_driver and of_driver[0] < 13:
        return _found(
            "CuPy", "broken", f"{said}: it is for drivers of CUDA 13, and this one is for CUDA {of_driver[0]}",
            f"pip uninstall -y {wheels[0]} && pip install 'phobos-tools[{_extra('gpu')}]'",
        )  # fmt: skip
    return _found("CuPy", "works", said)


def _server() -> dict[str, Any]:
    return _needing("editor", ("pygls", "lsprotocol"), "`phobos lsp` can serve editors (pygls {})")


def _tuning(cleared: str) -> dict[str, Any]:
    from phobos.runtime.tuning import keeping

    kept = keeping.kept()
    said = f"{plural(kept.winners, 'winner')} that launches use, {plural(kept.files, 'file')} in {kept.folder}{cleared}"
    return _folder("tuning", kept.folder, said, winners=kept.winners, files=kept.files)


def _cache(cleared: str) -> dict[str, Any]:
    from phobos.codegen import cache

    kept = cache.kept()
    said = f"{plural(kept.files, 'file')} of compiled kernels, {kept.bytes / 1e6:.1f} MB, in {kept.folder}{cleared}"
    return _folder("cache", kept.folder, said, files=kept.files, bytes=kept.bytes)


def _folder(part: str, folder: str, said: str, **more: Any) -> dict[str, Any]:
    """A part that keeps things in a folder. Without one it works all the same, but anew each time."""
    from pathlib import Path

    from phobos.codegen import cache

    if cache.is_writable(Path(folder)):
        return _found(part, "works", said, folder=folder, **more)
    mend = "export PHOBOS_CACHE=FOLDER, with one that you can write to, and nobody else"
    why = "it cannot be written to, or others can write to it, so nothing there is read and nothing is kept"
    return _found(part, "broken", f"{said}: {why}", mend, folder=folder, **more)
