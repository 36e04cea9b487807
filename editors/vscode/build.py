"""Builds the extension: type check, bundle, the server with all it needs, and the .vsix.

`node` and `npm` are those on PATH; the packages are in node_modules. What goes into the .vsix of the server is pure
Python, so one file serves every system.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SERVER = HERE / "bundled"


def run(*command: str | Path) -> None:
    done = subprocess.run(
        [str(part) for part in command], cwd=HERE, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def bundle_server() -> None:
    """`bundled/`: the package and its dependencies, without what only makes them larger."""
    requirements = HERE / "bundled.txt"
    stamp = SERVER / ".requirements"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        shutil.rmtree(SERVER, ignore_errors=True)
        # `--platform any`: only wheels that hold no machine code will do.
        run(
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile",
            "--target", SERVER, "--only-binary=:all:", "--no-deps", "--python-version", "3.11",
            "--implementation", "py", "--abi", "none", "--platform", "any", "-r", requirements,
        )  # fmt: skip
        shutil.rmtree(SERVER / "bin", ignore_errors=True)
        stamp.write_text(requirements.read_text())
    shutil.rmtree(SERVER / "phobos", ignore_errors=True)
    shutil.copytree(ROOT / "phobos", SERVER / "phobos", ignore=shutil.ignore_patterns("__pycache__"))


def build(out: Path) -> None:
    bin = HERE / "node_modules" / ".bin"
    run(bin / "tsc", "--noEmit")
    run(
        bin / "esbuild", "src/extension.ts", "--bundle", "--platform=node", "--format=cjs", "--target=node20",
        "--external:vscode", "--outfile=dist/extension.js", "--minify",
    )  # fmt: skip
    bundle_server()
    shutil.copyfile(ROOT / "LICENSE", HERE / "LICENSE")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.vsix"
        # There is no repository to point links at: pictures lie in the .vsix.
        options = ("--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links")
        run(bin / "vsce", "package", *options, "--out", made)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "phobos-tools.vsix")
    arguments = parser.parse_args()
    os.environ.pop("npm_config_nodedir", None)
    target = arguments.out if arguments.out.is_absolute() else Path.cwd() / arguments.out
    build(target)
    print(f"{arguments.out}: {target.stat().st_size / 1e6:.1f} MB")
