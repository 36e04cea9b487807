# make run and make test are all that a newcomer needs: each sets up what it needs, once, and then does its work.
# Everything lives in the checkout: .venv for Python, node and Neovim, editors/vscode/node_modules, .cache for VS Code.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: run test test-gpu lint bench truth fuzz dataflow docs vsix unit editors picture clean help

VENV := .venv
PY := $(VENV)/bin/python
NODE := $(VENV)/node
VSCODE := editors/vscode
VSIX := $(VSCODE)/phobos-tools.vsix
PYODIDE := editors/browser/node_modules/.installed

help:
	@echo "make run        check examples/staged.ph, run it, print plan and result"
	@echo "make test       lint, then editors and unit tests side by side; seconds a stage and the sum of what passed at the end"
	@echo "make unit       the tests without the editors'      make editors    the editors' tests alone"
	@echo "make test-gpu   the tests that need a card; installs nothing, PYTHON=... names the interpreter"
	@echo "make lint       ruff, and mypy --strict on phobos and benchmarks"
	@echo "make bench      the benchmark suite                 make truth      checker against reference, 20 000 seeds"
	@echo "make fuzz       inputs in numbers through every stage and the server, 100 000 more"
	@echo "make dataflow   random kernels, the emitted text against the reference: SEEDS=2000 of them, from FROM=0 on"
	@echo "make docs       the site, into build/site"
	@echo "make vsix       the VS Code extension, with the server inside"
	@echo "make picture    the editor's picture in README, taken anew"

# ---- set-up, a stamp file a step ------------------------------------------------------------------------------

$(VENV)/.created:
	@tests/setup/venv.sh $(VENV)
	@touch $@

$(VENV)/.run: pyproject.toml | $(VENV)/.created
	@echo "installing Phobos tools into $(VENV)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.created
	@echo "installing what the tests need into $(VENV)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.node: tests/setup/editors.txt | $(VENV)/.created
	@echo "installing node and Neovim into $(VENV)"
	@$(PY) -m pip install --quiet --disable-pip-version-check -r tests/setup/editors.txt
	@tests/setup/node.sh $(VENV) $(NODE)
	@touch $@

$(VSCODE)/node_modules/.installed: $(VSCODE)/package-lock.json | $(VENV)/.node
	@echo "installing the extension's packages"
	@cd $(VSCODE) && PATH="$(abspath $(NODE)):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(PYODIDE): editors/browser/package-lock.json | $(VENV)/.node
	@echo "installing Pyodide, for the page that runs the checker in the browser"
	@cd editors/browser && PATH="$(abspath $(NODE)):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --loglevel=error \
	  || { echo "make: npm could not fetch pyodide. \`make docs BROWSER=no\` builds the site without that page." >&2; exit 2; }
	@touch $@

.cache/vscode/.installed: tests/setup/vscode.sh | $(VENV)/.node
	@echo "installing VS Code for the browser (code-server)"
	@PATH="$(abspath $(NODE)):$$PATH" tests/setup/vscode.sh .cache/vscode
	@touch $@

.cache/browser: tests/setup/browser.sh | $(VENV)/.node
	@mkdir -p .cache
	@PATH="$(abspath $(NODE)):$$PATH" tests/setup/browser.sh .cache/chromium > $@

# ---- the work -------------------------------------------------------------------------------------------------

run: $(VENV)/.run
	@echo "$$ phobos check examples/staged.ph"
	@$(VENV)/bin/phobos check examples/staged.ph
	@echo
	@echo "$$ phobos run examples/staged.ph"
	@$(VENV)/bin/phobos run examples/staged.ph

EDITORS := $(VENV)/.dev $(VSIX) $(PYODIDE) .cache/vscode/.installed .cache/browser

test: $(VENV)/.dev $(EDITORS)
	@$(PY) tests/stages.py lint editors+unit

unit: $(VENV)/.dev
	@$(PY) tests/stages.py unit

editors: $(EDITORS)
	@$(PY) tests/stages.py editors

lint: $(VENV)/.dev
	@$(PY) tests/stages.py lint

picture: $(EDITORS)
	@$(PY) -m tests.editors.picture

# The interpreter is the caller's, with its own CUDA packages: nothing is installed into it.
test-gpu:
	@PYTHONPATH=.$${PYTHONPATH:+:$$PYTHONPATH} $${PYTHON:-python3} tests/stages.py gpu

# All that can run here; the parts that want a card run where one answers. `phobos bench --help` for one part, or quickly.
bench: $(VENV)/.dev
	@$(PY) -m phobos bench

fuzz: $(VENV)/.dev
	@$(PY) -m tests.fuzz.run --inputs 100000

FROM := 0
SEEDS := 2000
dataflow: $(VENV)/.dev
	@$(PY) -m tests.dataflow.run --from $(FROM) --seeds $(SEEDS)

# BROWSER=no builds the site without the page that runs the checker in the browser, and asks npm for nothing.
BROWSER := yes
docs: $(VENV)/.dev $(if $(filter no,$(BROWSER)),,$(PYODIDE))
	@NO_MKDOCS_2_WARNING=1 PHOBOS_DOCS_BROWSER=$(BROWSER) $(PY) -m mkdocs build --strict --quiet && echo "docs: build/site/index.html"

truth: $(VENV)/.dev
	@$(PY) -m tests.truth.run --seeds 20000

vsix: $(VSIX)

$(VSIX): $(VSCODE)/node_modules/.installed $(VENV)/.dev \
    $(shell git ls-files 2>/dev/null phobos $(VSCODE) pyproject.toml | grep -v 'package-lock' || true)
	@PATH="$(abspath $(NODE)):$$PATH" $(PY) $(VSCODE)/build.py --out $(VSIX)

clean:
	rm -rf $(VENV) .cache editors/browser/node_modules $(VSCODE)/node_modules $(VSCODE)/dist $(VSCODE)/bundled $(VSIX)
