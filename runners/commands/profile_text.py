"""A profile's YAML for this machine, with comments: what `new-profile` and `try` write.

It runs as it is written where target and engines are known. What could not be found holds an example, marked CHECK.
"""

import json

import psutil

from runners.commands import found_engines
from runners.commands.found_models import Draft
from runners.commands.profile_plan import Plan, drafting, new_profile
from runners.engines.registry import engine


def text(plan: Plan) -> str:
    """The profile's YAML."""
    lines = [
        "# Written for this machine. Lines marked CHECK hold examples: fill them in.",
        f"name: {json.dumps(plan.name)}",
        f"title: {json.dumps(_title(plan), ensure_ascii=False)}",
        *_hardware(plan),
        *(_target(plan) if plan.target else EXAMPLE),
        *_drafter(plan.drafter),
        *_engines(plan),
        *_configurations(plan),
        *_workload(plan),
        *_limits(plan),
    ]
    return "\n".join(lines) + "\n"


EXAMPLE = (
    "target:                    # CHECK: every line; `--model FOLDER` fills them in",
    "  name: my-model",
    "  precision: BF16",
    "  layers: 32",
    "  hidden_size: 4096",
    "  vocab_size: 128256",
    "  context_length: 8192     # of one request",
    "  bytes_on_disk: 16000000000",
    "  path: /models/my-model",
)


def _title(plan: Plan) -> str:
    found = plan.found
    where = f"{len(found)} x {found[0].name}" if found else f"{found_engines.cores()} CPU cores"
    return f"{plan.target.name if plan.target else 'a target'} on {where}"


def _hardware(plan: Plan) -> list[str]:
    memory, found = psutil.virtual_memory().total / 2**30, plan.found
    at_once = f"  servers_at_once: {plan.servers_at_once}       "
    if plan.servers_at_once > 1:
        at_once += "# base and another one are alive together: ratios are made within seconds"
    else:
        at_once += "# CHECK: 2 where the memory holds base and another one; then a start decides much more"
    if not found:
        what = f"{found_engines.cores()} CPU cores, {memory:.0f} GiB of memory; no GPU was found"
        return ["hardware:", f"  description: {what}", f"  cpu_cores: {found_engines.cores()}", at_once]
    return [
        "hardware:",
        f"  description: {len(found)} x {found[0].name}, driver {found[0].driver}, {memory:.0f} GiB of host memory",
        at_once,
        f"  gpus: {len(found)}",
        f"  gpu_name: {found[0].name}",
        f"  gpu_memory_gib: {found[0].memory_gib:.0f}",
    ]


def _target(plan: Plan) -> list[str]:
    model = plan.target
    assert model is not None, "text() has an example for no target"
    limit = f"# of one request; the model's own limit is {model.context_length}"
    lines = [
        "target:",
        f"  name: {json.dumps(model.name)}",
        f"  precision: {json.dumps(model.precision)}",
        f"  layers: {model.layers}",
        f"  hidden_size: {model.hidden_size}",
        f"  vocab_size: {model.vocab_size}",
        f"  context_length: {plan.context}     {limit}",
        f"  bytes_on_disk: {model.bytes_on_disk}",
        f"  path: {json.dumps(str(model.forms.folder or model.forms.gguf), ensure_ascii=False)}",
    ]
    if model.forms.folder is not None and model.forms.gguf is not None:
        second = {"path": str(model.forms.gguf), "precision": model.gguf_precision, "bytes_on_disk": model.gguf_bytes}
        lines.append(f"  gguf: {json.dumps(second, ensure_ascii=False)}")
    return lines


def _drafter(draft: Draft | None) -> list[str]:
    if draft is None:
        return []
    first = draft.forms.folder or draft.forms.gguf
    lines = ["drafters:", "  own:", f"    path: {json.dumps(str(first), ensure_ascii=False)}"]
    if draft.forms.folder is not None and draft.forms.gguf is not None:
        lines.append(f"    gguf: {json.dumps(str(draft.forms.gguf), ensure_ascii=False)}")
    return lines


def _engines(plan: Plan) -> list[str]:
    lines = ["engines:                   # without a `port` any free one is taken"]
    for kind, how in plan.engines.items():
        check = "" if how.seen else "   # CHECK: it was not found; `--python PATH` looks there"
        reached = f"environment: {how.environment}" if how.environment else f"python: {json.dumps(how.python)}"
        flags, variables = new_profile(kind).settings(plan.box) or ({}, {})
        name = engine(kind).longer_context_variable
        limit = plan.drafter.limit if plan.drafter else None
        if name is not None and limit is not None and limit < plan.context:
            variables |= {name: "1"}
        lines += [f"  {kind}:", f"    version: {json.dumps(how.version)}{check}", f"    {reached}"]
        lines += [f"    flags: {json.dumps(flags)}"] if flags else []
        lines += [f"    env: {json.dumps(variables)}"] if variables else []
    return lines


def _configurations(plan: Plan) -> list[str]:
    lines = ["configurations:             # the cap is always given: an engine's default depends on speculation"]
    for kind in plan.engines:
        for name, title, more in drafting(plan, kind):
            lines += [f"  {name}:", f"    engine: {kind}", f"    title: {json.dumps(title)}"]
            lines += [f"    {key}: {json.dumps(value)}" for key, value in more.items()]
    return lines


def _workload(plan: Plan) -> list[str]:
    def row(value) -> str:
        return "{" + ", ".join(f"{c}: {value(c)}" for c in plan.levels) + "}"

    requests = row(lambda c: max(2, c // (4 if plan.on_cpu else 2)))
    # Between servers of one GPU box a comparison takes a start of each side, and a start is long.
    minutes = plan.wanted.minutes or (20 if plan.on_cpu else None)
    limit = f"minutes: {minutes:g}, " if minutes else ""
    return [
        "workload:",
        f"  prompt_sets: {json.dumps(list(plan.wanted.prompt_sets), ensure_ascii=False)}"
        "   # with `mix: {chat: 0.7, edit: 0.3}` the verdict has an answer for the mix too",
        f"  output_tokens: {plan.output_tokens}",
        f"  concurrencies: {list(plan.levels)}",
        "  presets:",
        "    # rounds: most starts of a comparison; repeats: blocks of one start; requests: answers of one window.",
        "    # One start of each side decides nothing by itself: `full` pays for six.",
        f"    quick: {{{limit}rounds: {3 if plan.on_cpu else 1}, repeats: {row(lambda c: 1)}, requests: {requests}}}",
        f"    full: {{rounds: 6, repeats: {row(lambda c: 2 if c <= 4 else 1)}, requests: {requests}}}",
    ]


def _limits(plan: Plan) -> list[str]:
    starts = {kind: engine(kind).start_seconds for kind in plan.engines}
    return [
        "budgets:                    # seconds a load phase may take before silence means a stall",
        *(f"  {kind}: {{default: 1800}}" for kind in plan.engines),
        "stall_seconds: 120",
        f"request_timeout_seconds: {300 if plan.on_cpu else 600}",
        "gates:",
        "  equal_to_base_floor: 0.3",
        "  check_neighbours: "
        + ("true" if plan.on_cpu else "false        # a box of this size has other work on its cores"),
        f"timing: {json.dumps({'start_seconds': starts})}   # assumed until a start was measured",
    ]
