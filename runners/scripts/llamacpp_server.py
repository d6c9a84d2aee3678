"""llama.cpp's native HTTP server from the `xllamacpp` wheel, under llama-server's own flag names.

Runs inside the llama.cpp environment (runners/engines/llamacpp.txt), never imported by the report.
Because the flags are llama-server's, a profile may name a real `llama-server` binary instead and
keep every other word of its command line.

A drafter path without a speculation type silently gives no speculation in this build (common/speculative.cpp
decides by type), so this program refuses that pair.
"""

import argparse
import os
import signal
import sys
import threading


def parser() -> argparse.ArgumentParser:
    # No abbreviations: a flag that is cut short must not pass for another.
    p = argparse.ArgumentParser(prog="llamacpp_server.py", description=__doc__, allow_abbrev=False)
    p.add_argument("--model", required=True, help="target, a GGUF file")
    p.add_argument("--alias", default="", help="the model's name in answers")
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--parallel", type=int, required=True, help="slots: the cap on running requests")
    p.add_argument("--ctx-size", type=int, required=True, help="tokens over all slots")
    p.add_argument("--kv-unified", action="store_true", help="one key-value buffer for all slots")
    p.add_argument("--threads", type=int, required=True)
    p.add_argument(
        "--cache-ram", type=int, default=0, help="host memory for old prompts, MiB (0: off, so a prompt is never free)"
    )
    p.add_argument("--spec-type", help="e.g. draft-eagle3, ngram-simple")
    p.add_argument("--spec-draft-model", help="drafter, a GGUF file")
    p.add_argument("--spec-draft-n-max", type=int, help="K, tokens drafted per verification step")
    p.add_argument("--no-spec-draft-backend-sampling", action="store_true", help="draft tokens sampled on the host")
    p.add_argument("--spec-synth-len", type=float, help="pretend this accept length, whatever the target says")
    p.add_argument("--spec-ngram-simple-size-n", type=int, help="length of the looked-up n-gram")
    p.add_argument("--spec-ngram-simple-size-m", type=int, help="length of the draft it gives")
    p.add_argument("--spec-ngram-simple-min-hits", type=int)
    return p


def main() -> None:
    args = parser().parse_args()
    for path in filter(None, (args.model, args.spec_draft_model)):
        if not os.path.isfile(path):
            sys.exit(f"error: no such file: {path}")
    if args.spec_draft_model and not args.spec_type:
        sys.exit("error: --spec-draft-model without --spec-type would give no speculation; add --spec-type")
    print("importing xllamacpp", flush=True)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = args.model
    if args.alias:
        params.model_alias = {args.alias}
    params.hostnames = [args.host]
    params.port = args.port
    params.n_parallel = args.parallel
    params.n_ctx = args.ctx_size
    params.kv_unified = args.kv_unified
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = args.threads
    params.cache_ram_mib = args.cache_ram
    params.cache_idle_slots = False
    params.slot_prompt_similarity = 0.0  # a slot chosen for its old prompt would make timings depend on order
    params.endpoint_metrics = True
    params.endpoint_props = True
    params.endpoint_slots = True
    params.ui = False
    if args.spec_type:
        kinds = {e.name: e for e in xllamacpp.common_speculative_type}
        name = "COMMON_SPECULATIVE_TYPE_" + args.spec_type.upper().replace("-", "_")
        if name not in kinds:
            sys.exit(f"error: unknown --spec-type {args.spec_type}")
        params.speculative.types = [kinds[name]]
    if args.spec_draft_model:
        params.speculative.draft.mparams.path = args.spec_draft_model
        for cpu in (params.speculative.draft.cpuparams, params.speculative.draft.cpuparams_batch):
            cpu.n_threads = args.threads
    params.speculative.draft.backend_sampling = not args.no_spec_draft_backend_sampling
    if args.spec_draft_n_max is not None:
        params.speculative.draft.n_max = args.spec_draft_n_max
    if args.spec_synth_len is not None:
        params.speculative.synth_len = args.spec_synth_len
    for flag in ("size_n", "size_m", "min_hits"):
        value = getattr(args, f"spec_ngram_simple_{flag}")
        if value is not None:
            setattr(params.speculative.ngram_simple, flag, value)

    print(f"loading model {args.model}", flush=True)
    server = xllamacpp.Server(params)
    print(f"server is listening on {server.listening_address}", flush=True)
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    done.wait()
    print("server stopped by signal", flush=True)
    os._exit(0)  # the native threads have no orderly end


if __name__ == "__main__":
    main()
