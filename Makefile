# Everything a learner or an author does. `make` alone lists it. GNU make 3.81 and newer; on Windows from Git Bash.
#   make PYTHON=/path/to/python3 …   another interpreter (3.11 or newer)
#   make test STRICT=1               a test that would be skipped for want of a component fails instead

BIN := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
PY := $(BIN)/python
export PYTHON

# A stamp is good as long as the folder, pyproject.toml and constraints.txt are what .venv was made from. With a good
# stamp nothing below touches the network.
ifneq ($(shell cat .venv/.complete 2>/dev/null),$(shell pwd -P && cat pyproject.toml constraints.txt | cksum))
$(shell rm -f .venv/.installed .venv/.installed-test .venv/.installed-full)
endif
FULL := $(wildcard .venv/.installed-full)
WITH_TEST := $(or $(FULL),.venv/.installed-test)
ANY := $(or $(FULL),$(wildcard .venv/.installed-test),.venv/.installed)

.DEFAULT_GOAL := help
.PHONY: help lab test run notebooks lint site slides bench full constraints clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' $(firstword $(MAKEFILE_LIST))

lab: $(ANY) ## set up, then open JupyterLab on your own copy of the notebooks (workbook/)
	$(BIN)/tri-memory lab

test: $(WITH_TEST) ## set up, then run all tests
	$(PY) -m pytest --numprocesses 2 --dist worksteal

run: $(ANY) ## execute every notebook headless: seconds, ok, and notebooks/claims.md
	$(PY) -m tri_memory.lab.run_notebooks

notebooks: $(ANY) ## build notebooks/*.ipynb and notebooks/solutions/ from notebooks/source/
	$(PY) -m tri_memory.lab.build_notebooks

# Cells may await at top level and use a name twice; annotations would only be in a learner's way.
CELLS := --config-file= --ignore-missing-imports --allow-redefinition \
	--disable-error-code=top-level-await --disable-error-code=no-redef \
	--disable-error-code=var-annotated --disable-error-code=union-attr
lint: $(WITH_TEST) ## ruff, mypy, and whether the built notebooks are those of the source
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy tri_memory
	$(PY) -m mypy $(CELLS) notebooks/source
	$(PY) -m tri_memory.lab.build_notebooks --check

site: $(WITH_TEST) ## execute the notebooks and make a web site of them in build/site
	$(PY) -m tri_memory.lab.build_site

slides: $(WITH_TEST) ## execute the notebooks and make slides of their plots and bullets in build/slides (npm, once)
	@test -d build/npm/node_modules/reveal.js || npm install --silent --no-audit --prefix build/npm reveal.js@4.6.1
	$(PY) -m tri_memory.lab.run_notebooks --save build/executed
	$(PY) -m tri_memory.lab.slides build/executed build/npm/node_modules/reveal.js

bench: $(WITH_TEST) ## speed, as ratios measured in one run
	$(PY) -m benchmarks

full: .venv/.installed-full ## set up with torch, sentence-transformers and the rest (several GB on Linux)

# With the oldest 3.11 at hand (Debian 12 has 3.11.2), or a package that needs a newer patch release gets pinned.
constraints: ## write constraints.txt anew from the newest versions that fit pyproject.toml
	rm -rf build/constraints
	$(or $(PYTHON),python3.11) -m venv build/constraints
	build/constraints/bin/python -m pip install --quiet --upgrade pip
	grep '^torch==' constraints.txt | xargs build/constraints/bin/python -m pip install --quiet -e '.[full]'
	build/constraints/bin/python scripts/constraints.py

clean: ## remove .venv, caches and build output; workbook/ stays
	rm -rf .venv build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed .venv/.installed-test .venv/.installed-full:
	sh scripts/install.sh $(patsubst -%,%,$(patsubst .venv/.installed%,%,$@))
	@touch $@
