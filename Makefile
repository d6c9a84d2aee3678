# make report · make test · make check · make book · make serve. PROFILE chooses what is measured, DEPTH how much.
# Each target is one command of `specverdict`; what it does is in runners/commands.
PROFILE ?= lab-cpu
DEPTH ?=
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m runners
DEPTH_FLAG := $(if $(DEPTH),--depth $(DEPTH))

.PHONY: report plan preflight rehearse test book serve publish compare share drafter clean

report: $(VENV)/complete
	@$(RUN) report --profile $(PROFILE) $(DEPTH_FLAG) $(if $(DRY_RUN),--dry-run)

plan: $(VENV)/complete
	@$(RUN) plan --profile $(PROFILE) $(DEPTH_FLAG)

test: $(VENV)/complete
	@$(VENV)/bin/python -m pytest

preflight: $(VENV)/complete
	@$(RUN) preflight --profile $(PROFILE)

rehearse: $(VENV)/complete
	@$(RUN) rehearse --profile $(if $(filter lab-cpu,$(PROFILE)),kimi-k2.5-8x-rtx-pro-6000,$(PROFILE))

book: $(VENV)/complete
	@$(RUN) book --profile $(PROFILE) $(if $(RUNS),--runs $(RUNS))

compare: $(VENV)/complete
	@$(RUN) compare $(A) $(B) --profile $(PROFILE)

share: $(VENV)/complete
	@$(RUN) share --profile $(PROFILE)

serve: $(VENV)/complete
	@$(RUN) serve --profile $(PROFILE)

publish: $(VENV)/complete
	@$(RUN) publish --profile $(PROFILE)
	@$(RUN) readme --profile $(PROFILE)

drafter: $(VENV)/complete
	@$(RUN) drafter --profile $(PROFILE)

clean:
	rm -rf build

# The marker file is written last, so that an interrupted installation is never taken for a complete one.
$(VENV)/complete: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit("error: Python 3.11 or newer is needed; set PYTHON=" if sys.version_info < (3, 11) else 0)'
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@echo "installing the report's environment into $(VENV)"
	@mkdir -p build
	@$(VENV)/bin/python -m pip install --disable-pip-version-check --no-input -r requirements.txt > build/venv.log 2>&1 \
	  || { rm -rf $(VENV); echo "error: pip could not install requirements.txt (see build/venv.log); if the package index is unreachable set PIP_INDEX_URL or PIP_FIND_LINKS and run again" >&2; exit 2; }
	@$(VENV)/bin/python -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("purelib"), "specverdict.pth"), "w").write(os.getcwd() + "\n")'
	@$(VENV)/bin/python -m ipykernel install --sys-prefix --name python3 >/dev/null
	@touch $@
