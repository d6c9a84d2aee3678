"""llama.cpp's native server from the xllamacpp wheel (runners/scripts/llamacpp_server.py).

Its INT4 kernels serve the GGUF file as it is. `ignore_eos` bans the end-of-text tokens there (a logit
bias of minus infinity), where vLLM and SGLang let them pass and go on: answers part where a text ends.
"""

from typing import Any

from runners.core.errors import UserError
from runners.core.paths import SCRIPTS
from runners.engines.command import Files
from runners.profiles.profile import Profile
from runners.profiles.schema import CHAINED, Configuration

HEALTH_PATH = "/health"
VERSION = ("/props", "build_info")  # where the running server tells its own
# One server, two cores: OpenMP is not used, threads are set by flag.
ENV: dict[str, str] = {}
SPEC_TYPES = {"eagle3": "draft-eagle3", "ngram": "ngram-simple", "draft_model": "draft-simple"}


def program() -> list[str]:
    return [str(SCRIPTS / "llamacpp_server.py")]


def arguments(profile: Profile, c: Configuration, files: Files, host: str, port: int) -> dict[str, Any]:
    """Flags under llama-server's own names; the context is per slot there, so it is multiplied."""
    if files.gguf is None:
        raise UserError(
            f"llama.cpp serves a GGUF file and target {profile.target.name} names none; set it in the profile."
        )
    flags: dict[str, Any] = {
        "model": files.gguf,
        "alias": profile.target.name,
        "host": host,
        "port": port,
        "parallel": c.max_running_requests,
        "ctx-size": c.max_running_requests * profile.target.context_length,
    }
    if c.method != "none":
        flags["spec-type"] = SPEC_TYPES[c.method]
    if c.method in CHAINED:
        flags |= {"spec-draft-model": files.drafter_gguf, "spec-draft-n-max": c.k}
        # Draft tokens sampled in the graph, the default, are mixed up between slots in this build: with a drafter
        # of accept length 1.39 at C=1 it read 1.11 at C=4 and 1.05 at C=16; sampled on the host it stayed 1.38, 1.37.
        flags["no-spec-draft-backend-sampling"] = True
    if c.forced_accept_length is not None:
        flags["spec-synth-len"] = c.forced_accept_length
    if c.method == "ngram":
        flags["spec-ngram-simple-size-m"] = c.k
    return flags


# The request field that names a slot (tools/server/server-context.cpp). Slots are handed out by least recent use, and
# requests whose slots do not lie side by side are computed in as many batches as there are gaps between them: four at
# once decoded 99, 83 and 63 tokens/s in one, two and four groups. Which it was would depend on what ran before.
PLACE_FIELD = "id_slot"


def request_fields() -> dict[str, Any]:
    """Prompts are never free: a slot's old prompt must not be reused."""
    return {"cache_prompt": False}
