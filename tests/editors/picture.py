"""Takes the picture of README and extension anew: `make picture`, or `python -m tests.editors.picture`.

The editor, its profile and its folder are those of the tests: nothing of the machine is to be seen.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from tests.editors.parts import EXTENSION
from tests.editors.test_vscode import PICTURES, Tour, script, vs_code

TARGET = EXTENSION / "images" / "hover.png"
MOST = 200_000  # bytes: it comes with every copy of the extension


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with vs_code(folder, sys.executable) as variables:
            seen = Tour(script("picture.mjs", folder, variables, 300))["picture"]
    assert "PH205" in seen, seen
    made = PICTURES / "readme.png"
    assert made.stat().st_size < MOST, f"{made} has {made.stat().st_size} bytes"
    shutil.copy(made, TARGET)
    print(f"{TARGET}: look at it")


if __name__ == "__main__":
    main()
