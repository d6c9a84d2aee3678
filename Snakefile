# The whole pipeline as one graph: measure -> analyse -> book. `make report` runs it; it also runs by itself:
#   snakemake --cores 2 --config profile=lab-cpu preset=quick runs=local
# Each rule runs a notebook (notebooks/*.ipynb) through papermill; what a notebook calls is in runners/.
# The measuring steps form one chain (ABCABC): one server at a time, and each configuration is measured once before any of
# them is measured again, so that a slow hour of the machine hits all of them.
# Finished cells are in the ledger, so a notebook that runs again measures only what is missing.
from runners.core import paths
from runners.profiles.load import load

PROFILE = config.get("profile", "lab-cpu")
profile = load(PROFILE)
PRESET = config.get("preset") or profile.workload.default_preset
RUNS = str(config.get("runs") or "local")  # published, local, or a folder; notebooks get this word, not a path
ONLY = [name for name in (config.get("only") or "").split(",") if name]
CONFIGURATIONS = ONLY or profile.at_preset(PRESET)
ROUNDS = range(profile.preset(PRESET).rounds)

ROOT = paths.runs_root(RUNS)
HERE = (ROOT.relative_to(paths.ROOT) if ROOT.is_relative_to(paths.ROOT) else ROOT) / profile.name
WORK = f"build/steps/{profile.name}/{PRESET}"
STEPS = [(c, r) for r in ROUNDS for c in CONFIGURATIONS]
BOOK = "build/rehearsal/book" if profile.simulated else "build/book"
ANALYSES = ["comparison", "acceptance", "drafter", "alignment", "payoff", "verdict", "claims", "reproduction"]
EXECUTE = "papermill --log-level WARNING --no-progress-bar --kernel python3"


def before(wildcards):
    """The step that must end before this one starts; none for the first."""
    position = STEPS.index((wildcards.configuration, int(wildcards.round)))
    return ancient(f"{WORK}/run_{STEPS[position - 1][0]}-{STEPS[position - 1][1]}.ipynb") if position else []


rule all:
    input:
        f"{BOOK}/_build/html/index.html",


rule run_configuration:
    input:
        notebook=ancient("notebooks/run_configuration.ipynb"),
        before=before,
    output:
        f"{WORK}/run_{{configuration}}-{{round}}.ipynb",
    wildcard_constraints:
        round=r"\d+",
    threads: workflow.cores  # the whole machine: after an interruption two steps could be ready at once
    params:
        published=lambda w: f"{HERE}/notebooks/run_{w.configuration}.ipynb",
    shell:
        EXECUTE + " {input.notebook} {output:q} -p profile {PROFILE:q} -p configuration {wildcards.configuration}"
        " -p preset {PRESET:q} -p round {wildcards.round} -p runs {RUNS:q}"
        ' && mkdir -p "$(dirname {params.published:q})" && cp {output:q} {params.published:q}'


rule analyse:
    input:
        notebook=ancient("notebooks/{analysis}.ipynb"),
        runs=[f"{WORK}/run_{c}-{r}.ipynb" for c, r in STEPS],
    output:
        f"{HERE}/notebooks/{{analysis}}.ipynb",
    wildcard_constraints:
        analysis="|".join(ANALYSES),
    params:
        write=lambda w: "-p write True" if w.analysis == "verdict" else "",
    shell:
        EXECUTE + " {input.notebook} {output:q} -p profile {PROFILE:q} -p runs {RUNS:q} {params.write}"


rule book:
    input:
        [f"{HERE}/notebooks/{a}.ipynb" for a in ANALYSES],
    output:
        f"{BOOK}/_build/html/index.html",
    shell:
        "python -m runners book --profile {PROFILE:q} --runs {RUNS:q}"
