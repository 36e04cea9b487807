"""What `test_hostile_text` runs in a process of its own: hostile texts, under an audit hook that notes what is asked of
the system. `python -m tests.house.hostile CACHE [PLANTED]`; the last line printed is what was seen, as JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import sysconfig
from contextlib import suppress
from typing import Any

from phobos.check import findings
from phobos.check.configuration import DEFAULT
from phobos.check.fixes import fix_all
from phobos.syntax.format import FormatError, format_text
from tests.fuzz.conversation import converse
from tests.fuzz.seeds import ROOT, raising, seeds

NAMES = (
    "__import__('os').system('touch W')", "{{7*7}}", "%s%n", "$(touch W)", "`touch W`", "../../W", "f'{open(\"W\")}'",
)  # fmt: skip
HOSTILE = [
    f"// run: X=@W N=4\n// run: kernel=k X=@/etc/passwd\n// expect: X sha256=@W\n// phobos: ignore[{name}]\n"
    f"@autotune(T in [4])\nkernel k(X: tensor<f32>[N]) {{\n  X[0] = {name}\n}}\n"
    for name in NAMES
] + ["import os\nos.system('touch W')\n", '#include "/etc/passwd"\n', '#line 1 "/etc/passwd"\n', "!touch W\n"]
PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.startfile", "pty.spawn")
CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.symlink", "shutil.rmtree")
OTHERS = ("socket.connect", "socket.bind", "ctypes.dlopen", "webbrowser.open", "pickle.find_class")


def watch(cache: str) -> list[list[str]]:
    """What is asked of the system from now on, but for reading what is installed and keeping what was learnt."""
    seen: list[list[str]] = []
    cache = os.path.realpath(cache)
    installed = (str(ROOT), sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"))
    readable = (cache, *map(os.path.realpath, installed))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            writes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if not path.startswith(cache if writes else readable):
                seen.append([event, path])
        elif event in CHANGES:
            if not os.path.realpath(os.fsdecode(arguments[0])).startswith(cache):
                seen.append([event, repr(arguments)])
        elif event in PROCESSES or event in OTHERS:
            seen.append([event, repr(arguments)[:200]])

    sys.addaudithook(hook)
    return seen


def main(cache: str, planted: str = "") -> None:
    texts = [seed.text for seed in seeds()[: raising()]]
    for text in texts:  # what is imported on demand is imported now
        findings("<text>", text)
    converse(texts[0], random.Random(1))
    seen = watch(cache)
    for number, text in enumerate([*HOSTILE, *texts]):
        findings("hostile.ph", text)
        fix_all("hostile.ph", text, DEFAULT, True)
        with suppress(FormatError):
            format_text(text)
        if number < len(HOSTILE):
            converse(text, random.Random(number))
    if planted:
        exec(planted)
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
