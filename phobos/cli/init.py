"""Set up a folder for Phobos kernels: a configuration, a sample kernel and a job for CI.

What is there already is kept as it is, and said so; nothing is overwritten. The sample is a persistent kernel
with its own `// run:` and `// expect:` lines, so that `phobos check` and `phobos run` have something to do.
Exit 0: the folder has all of them. 2: something could not be written.
"""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from phobos.check.project import write
from phobos.errors import InputError

EXAMPLE = """
phobos init                     here
phobos init kernels --ci gitlab
"""

CONFIGURATION = """\
# Phobos tools read this file for every .ph file below it: on the command line, in the editor and in CI.

# The cards whose registers, threads and shared memory bound what fits; `phobos occupancy --help` lists them.
# target = ["h200", "a100"]

# Sizes for which questions that no formula answers are decided by counting.
# sizes = { N = 1048576 }

# Findings that are not wanted: a code, a group such as "PH6", or a rule's name. `phobos rule --all` lists them.
ignore = []

# The least that is shown: "error", "warning" or "info"; and the least for which the exit code is 1.
# severity = "warning"
# fail-on = "warning"
"""

KERNEL = """\
// A persistent kernel: as many blocks as the card holds at once share the tiles of X among them. The grid barrier
// separates the two passes, because the second reads tiles that other blocks wrote in the first.
//
// run: kernel=neighbours N=4096 X=iota Y=zeros
// expect: Y[0] = 512.0
// expect: Y[3839] = 8190.0
// expect: Y[3840] = 0.0

@launch(256)
@persistent
@autotune(TILE in [256])
kernel neighbours(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
    X[t :+ TILE] = X[t :+ TILE] * 2.0
  }
  grid_barrier(BAR)
  for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
    Y[t :+ TILE] = X[t + TILE :+ TILE]
  }
}
"""

_GITHUB = """\
name: kernels
on: [push, pull_request]
jobs:
  phobos:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install phobos-tools        # or the wheel, path or repository that you install it from
      - run: phobos check .          # findings stand in the pull request, at their lines
      - run: phobos fmt --check .
"""

_GITLAB = """\
phobos:
  image: python:3.12
  script:
    - pip install phobos-tools        # or the wheel, path or repository that you install it from
    - phobos fmt --check .
    - phobos check . --output-format gitlab --output-file phobos.json
  artifacts:
    when: always
    reports:
      codequality: phobos.json
"""

CI = {
    "github": (".github/workflows/phobos.yml", _GITHUB),
    "gitlab": (".gitlab-ci.yml", _GITLAB),
    "none": None,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="made if need be (default: here)")
    parser.add_argument("--ci", choices=sorted(CI), default="github", help="whose job file (default github)")


def run(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder)
    files = {"phobos.toml": CONFIGURATION, "kernels/neighbours.ph": KERNEL}
    job = CI[arguments.ci]
    if job is not None:
        files[job[0]] = job[1]
    for name, text in files.items():
        path = folder / name
        try:
            if os.path.lexists(path):  # a link to nothing is somebody's, too
                print(f"kept    {path}: it is there already")
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make {path.parent}: {error.strerror or error}") from None
        write(str(path), text, False)
        print(f"wrote   {path}")
    kernel = folder / "kernels/neighbours.ph"
    print(f"\nNow: phobos check {shlex.quote(str(folder))}, phobos run {shlex.quote(str(kernel))}")
    return 0
