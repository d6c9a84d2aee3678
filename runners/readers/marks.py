"""What only one engine writes, for telling whose text an excerpt is. An engine's reader may bring its own as MARKS."""

import re
from typing import NamedTuple


class Marks(NamedTuple):
    """sure: forms that only this engine writes. likely: words that are typical of it, its folders in a traceback."""

    sure: re.Pattern[str]
    likely: re.Pattern[str]


def _any(*forms: str) -> re.Pattern[str]:
    return re.compile("|".join(forms))


_PROCESSES = r"(?:\([A-Za-z][\w .=-]*? pid=\d+(?:, ip=[\w.:]+)?\) ?)"
OF_ENGINE = {
    "vllm": Marks(
        sure=_any(
            rf"^{_PROCESSES}*(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:\d{{4}}-)?\d\d-\d\d \d\d:\d\d:\d\d\S* "
            r"\[?[^\]\s]+:\d+\]",
            r"^\((?:(?:API|Api)Server|EngineCore|VllmWorker|Worker_(?:TP|PP|DP|EP)\d)[\w =]* pid=\d",
            r"SpecDecoding metrics: |Speculative metrics: Draft|Avg prompt throughput: [\d.]+ tokens/s",
            r"WorkerProc |EngineCore (?:failed|encountered)|EngineDeadError|Engine core initialization failed",
            r"No available shared memory broadcast block|waiting for engines to send ?initial message",
            r"Graph capturing finished in \d",
        ),
        likely=_any(r"[/\\]vllm[/\\]", r"\bvllm\b", r"\bVLLM_[A-Z]", r"^api_server\.py: error: "),
    ),
    "sglang": Marks(
        sure=_any(
            r"^\[(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(?:\.\d+)?(?: (?:TP|DP|PP|EP|CP|ATTN_TP)\d+)+\] ",
            r"(?:Decode|Prefill) batch\b.*#(?:running-req|new-seq): ",
            r"accept len: \d+\.\d+, accept rate: \d",
            r"#running-req: \d+, .*gen throughput \(token/s\)",
            r"server_args=ServerArgs\(|The server is fired up and ready to roll|Load weight (?:begin|end)\.",
            r"TP rank \d+ could finish the model loading|Scheduler hit an exception",
            r"Received sigquit from a child|Rank \d+ scheduler (?:is dead|died)",
            r"Capture (?:[\w ]+ )?(?:cuda|cpu|npu) graph (?:begin|end|bs)",
        ),
        likely=_any(
            r"[/\\]sglang[/\\]",
            r"^launch_server\.py: error: ",
            r"\bsglang\b",
            r"\bSGLANG_[A-Z]",
            r"\bsgl_kernel\b",
            r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ",
            r"^(?:\[[^\]]*\] )?Exit code: -?\d",
            r"SIGQUIT received",
        ),
    ),
    "llamacpp": Marks(
        sure=_any(
            r"^(?:\[\d+\] )?\d+\.\d\d\.\d{3}\.\d{3} [DIWE] ",
            r"^(?:\S+ [DIWE] )?(?:slot|srv|que|res|cmn|spec) +\w+: ",
            r"draft acceptance(?: rate)? = +\S+ \( *\d+ accepted|#mean acc len = ",
            r"^(?:\S+ [DIWE] )?statistics +[\w-]+: ",
            r"adaptive draft depth|creating MTP draft context|speculative decoding not supported by this context",
            r"draft model (?:vocab|bos|eos)\b.* must (?:closely )?match target|failed to process speculative batch",
            r"^(?:\S+ [DIWE] )?(?:llama|ggml|gguf)_\w+: |GGML_ASSERT",
            r"^(?:print_info|load_tensors|common_\w+|llama_server): ",
            r"^build: \d+ \(|build_info: |^main: (?:model loaded|loading model|server is listening)",
        ),
        likely=_any(r"llama[.-]?(?:cpp|server|cli)\b", r"\bggml\b", r"\.gguf\b"),
    ),
}

# What every engine on PyTorch writes: it tells that one of them did, and not which.
PYTORCH = ("sglang", "vllm")
OF_PYTORCH = _any(
    r"Traceback \(most recent call last\):",
    r"^(?:\[rank\d+\]: ?)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: |$)",
    r"mat1 and mat2 |(?:CUDA|HIP) out of memory|Cannot find the config file for |^Exit code: ",
    r"Loading safetensors checkpoint shards",
    r"^INFO: {4,}(?:Application |Started server|Uvicorn running|Waiting for application|\d+\.\d+\.\d+\.\d+:\d+ - )",
)
