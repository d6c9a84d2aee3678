# The whole pipeline as one graph: measure -> analyse -> book. `make report` runs it; it also runs by itself:
#   snakemake --cores 2 --config profile=lab-cpu preset=quick runs=local
# papermill runs the notebooks (notebooks/*.ipynb); what a notebook calls is in runners/.
# Measuring is one step, a campaign: it chooses itself what to measure next (measure/campaign.py). What is measured is in
# the ledgers, so a campaign that was interrupted goes on where it stopped.
from runners.core import paths
from runners.profiles.load import load

PROFILE = config.get("profile", "lab-cpu")
profile = load(PROFILE)
PRESET = config.get("preset") or profile.workload.default_preset
RUNS = str(config.get("runs") or "local")  # published, local, or a folder; notebooks get this word, not a path
ONLY = [name for name in (config.get("only") or "").split(",") if name]
CONFIGURATIONS = ONLY or profile.at_preset(PRESET)

ROOT = paths.runs_root(RUNS)
HERE = (ROOT.relative_to(paths.ROOT) if ROOT.is_relative_to(paths.ROOT) else ROOT) / profile.name
WORK = f"build/steps/{profile.name}/{PRESET}"
BOOK = "build/rehearsal/book" if profile.simulated else "build/book"
ANALYSES = ["comparison", "acceptance", "drafter", "alignment", "payoff", "verdict", "claims", "reproduction"]
PAGES = [f"{HERE}/notebooks/{name}.ipynb" for name in (*ANALYSES, *(f"run_{c}" for c in CONFIGURATIONS))]
EXECUTE = "python -m papermill --log-level WARNING --no-progress-bar --kernel python3"


rule all:
    input:
        f"{BOOK}/_build/html/index.html",


rule measure:
    input:
        notebook=ancient("notebooks/run_campaign.ipynb"),
    output:
        f"{WORK}/run_campaign.ipynb",
    threads: workflow.cores  # the whole machine: two busy processes ruin every timing
    params:
        published=f"{HERE}/notebooks/run_campaign.ipynb",
        more="-p more True" if config.get("more") else "",
        only="-r only " + ",".join(ONLY) if ONLY else "",
        seconds=config.get("seconds") or 0,
    shell:
        EXECUTE + " {input.notebook} {output:q} -p profile {PROFILE:q} -p preset {PRESET:q} -p runs {RUNS:q}"
        " {params.only} -p seconds {params.seconds} {params.more}"
        ' && mkdir -p "$(dirname {params.published:q})" && cp {output:q} {params.published:q}'


rule analyse:  # the chapters and run pages at once: they share one kernel, so nothing is imported or read twice
    input:
        notebooks=ancient([f"notebooks/{name}.ipynb" for name in (*ANALYSES, "run_configuration")]),
        campaign=f"{WORK}/run_campaign.ipynb",
    output:
        PAGES,
    params:
        configurations=" ".join(CONFIGURATIONS),
    shell:
        "python -m runners analyse --profile {PROFILE:q} --runs {RUNS:q} --configurations {params.configurations}"


rule book:
    input:
        PAGES,
    output:
        f"{BOOK}/_build/html/index.html",
    shell:
        "python -m runners book --profile {PROFILE:q} --runs {RUNS:q}"
