"""`python -m phobos` is the command."""

from __future__ import annotations

import sys

from phobos.cli import main

sys.exit(main())
