#!/usr/bin/env bash
# Makes a virtual environment at $1 with a Python of at least 3.11, or says what is missing and how to get it.
set -euo pipefail
target=$1
if [ -x "$target/bin/python" ] && "$target/bin/python" -m pip --version >/dev/null 2>&1; then
  exit 0
fi

fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
  if command -v "$name" >/dev/null && fits "$name"; then
    python=$name
    break
  fi
done
if [ -z "$python" ]; then
  echo "make: Phobos tools need Python 3.11 or newer, and none was found on PATH." >&2
  echo "      Install one, or name it: make run PYTHON=/path/to/python3" >&2
  exit 2
fi

rm -rf "$target"
if ! log=$("$python" -m venv "$target" 2>&1); then
  rm -rf "$target"
  version=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "make: $python cannot make virtual environments yet; installing Debian's $version"
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$version" >/dev/null \
      || apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    "$python" -m venv "$target"
  else
    echo "$log" >&2
    echo "make: $python cannot make virtual environments. On Debian and Ubuntu: sudo apt-get install $version" >&2
    exit 2
  fi
fi
