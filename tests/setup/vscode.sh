#!/usr/bin/env bash
# Installs VS Code for the browser (code-server) into $1, from npm and without compiling anything: what its install
# scripts would build (sqlite3, kerberos, spdlog) VS Code can do without, and only mentions in its log.
set -euo pipefail
mkdir -p "$1"
cd "$1"
export npm_config_audit=false npm_config_fund=false npm_config_ignore_scripts=true npm_config_loglevel=error
[ -f package.json ] || echo '{"private": true}' > package.json
npm install code-server@4.139.1
cd node_modules/code-server/lib/vscode
npm install --omit=dev
(cd bin/remote-cli && ln -sf code-linux.sh code-server)
(cd bin/helpers && ln -sf browser-linux.sh browser.sh)
cd extensions
npm install --omit=dev
