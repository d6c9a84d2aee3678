# make report · make test · make check · make book · make serve. PROFILE chooses what is measured, PRESET how much.
# Each target is one command of `specverdict`; what it does is in runners/commands.
PROFILE ?= lab-cpu
DEPTH ?=
PRESET ?= $(DEPTH)
PYTHON ?= python3
VENV := .venv
# By the interpreter, never by a script of bin/: those name the folder that they were installed in.
RUN := $(VENV)/bin/python -m runners
# A checkout that was copied brings its environment along; the marker holds the folder that it was made in.
MOVED := $(if $(wildcard $(VENV)/complete),$(if $(filter $(CURDIR),$(shell cat $(VENV)/complete)),,moved))
READY := $(VENV)/complete $(MOVED)
PRESET_FLAG := $(if $(PRESET),--preset $(PRESET))
# MINUTES=40 gives a report that much time; MORE=1 adds a campaign beside a finished one.
BUDGET := $(if $(MINUTES),--minutes $(MINUTES)) $(if $(MORE),--more)

.PHONY: moved report plan preflight rehearse check static fast test book serve publish compare share drafter lock clean

report: $(READY)
	@$(RUN) report --profile $(PROFILE) $(PRESET_FLAG) $(BUDGET) $(if $(DRY_RUN),--dry-run)

plan: $(READY)
	@$(RUN) plan --profile $(PROFILE) $(PRESET_FLAG)

preflight: $(READY)
	@$(RUN) preflight --profile $(PROFILE)

rehearse: $(READY)
	@$(RUN) rehearse --profile $(if $(filter lab-cpu,$(PROFILE)),kimi-k2.5-8x-rtx-pro-6000,$(PROFILE))

# Under a minute on two cores: one core reads the code, the other runs the fast tests.
check: $(READY)
	@$(MAKE) --no-print-directory -j2 -Otarget static fast

static: $(READY)
	@mkdir -p build
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/python $(VENV)/bin/lint-imports --no-cache > build/imports.log || { cat build/imports.log; exit 1; }
	@$(VENV)/bin/python -m mypy

fast: $(READY)
	@$(VENV)/bin/python -m pytest -q -m "not slow and not engine and not browser"

test: static
	@$(VENV)/bin/python -m pytest

book: $(READY)
	@$(RUN) book --profile $(PROFILE) $(if $(RUNS),--runs $(RUNS))

compare: $(READY)
	@$(RUN) compare $(A) $(B) --profile $(PROFILE)

share: $(READY)
	@$(RUN) share --profile $(PROFILE)

serve: $(READY)
	@$(RUN) serve --profile $(PROFILE) $(if $(USE),--use $(USE)) $(if $(WORKLOAD),--workload $(WORKLOAD))

publish: $(READY)
	@$(RUN) publish --profile $(PROFILE)
	@$(RUN) readme --profile $(PROFILE)

drafter: $(READY)
	@$(RUN) drafter --profile $(PROFILE)

# After a change of requirements.in. Pins that are there stay, so only what changed is resolved anew.
lock: $(READY)
	@$(VENV)/bin/uv pip compile -q requirements.in -o requirements.txt --generate-hashes --annotation-style line \
	  --python-version 3.11.5 --python-platform x86_64-unknown-linux-gnu --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock"

clean:
	rm -rf build

INSTALL_CHECKOUT := $(VENV)/bin/python -m pip install --disable-pip-version-check --no-input --no-index --no-deps \
  --no-build-isolation --editable .

# The marker file is written last, so that an interrupted installation is never taken for a complete one.
# The checkout itself is installed last, from what is already there: without an index and without a build environment.
$(VENV)/complete: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit("error: Python 3.11.5 or newer is needed; set PYTHON=" if sys.version_info < (3, 11, 5) else 0)'
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@echo "installing the report's environment into $(VENV)"
	@mkdir -p build
	@$(VENV)/bin/python -m pip install --disable-pip-version-check --no-input -r requirements.txt > build/venv.log 2>&1 \
	  || { rm -rf $(VENV); echo "error: pip could not install requirements.txt (see build/venv.log); if the package index is unreachable set PIP_INDEX_URL or PIP_FIND_LINKS and run again" >&2; exit 2; }
	@$(INSTALL_CHECKOUT) >> build/venv.log 2>&1 \
	  || { rm -rf $(VENV); echo "error: pip could not install this checkout (see build/venv.log)" >&2; exit 2; }
	@echo "$(CURDIR)" > $@

# What names the folder in the environment is written anew: the checkout itself, and the notebooks' kernel.
moved: $(VENV)/complete
	@echo "this checkout was copied: its environment is set to this folder"
	@mkdir -p build
	@$(INSTALL_CHECKOUT) >> build/venv.log 2>&1 \
	  || { echo "error: pip could not install this checkout (see build/venv.log); remove $(VENV) and run again" >&2; exit 2; }
	@$(VENV)/bin/python -m ipykernel install --sys-prefix --name python3 >/dev/null
	@echo "$(CURDIR)" > $(VENV)/complete
