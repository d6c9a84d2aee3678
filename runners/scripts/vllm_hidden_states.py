"""vLLM's hidden-state connector, writing from the CPU build; imported by vLLM's worker, not by us.

The stock ExampleHiddenStatesConnector (vllm/distributed/kv_transfer/kv_connector/v1/
example_hidden_states_connector.py, 0.32.0) copies on a CUDA stream and dies on the CPU build; this one writes in
place, without a stream or a thread, and keeps its file format and lock.
"""

import fcntl
import os

import torch
from safetensors.torch import save_file
from vllm.distributed.kv_transfer.kv_connector.v1 import example_hidden_states_connector as stock


class _Written:
    """Stands where the copy's CUDA event would: the file is whole already."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass


class CpuHiddenStatesConnector(stock.ExampleHiddenStatesConnector):
    def _submit_async_write(self, pending) -> None:
        if not self._is_tp_rank_zero:
            return
        size = self._block_size
        blocks = torch.tensor(pending.block_ids, dtype=torch.long)
        slots = (blocks[:, None] * size + torch.arange(size)).flatten()
        states = stock.extract_from_kv_cache(self._kv_cache, slots, pending.token_ids.shape[0])
        os.makedirs(os.path.dirname(pending.filename), exist_ok=True)
        lock = self._lock_fds.pop(pending.req_id, None)
        if lock is None and self.use_lock:
            lock = os.open(pending.filename + ".lock", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            found = {"hidden_states": states.clone().contiguous(), "token_ids": pending.token_ids.clone()}
            save_file(found, pending.filename)
        finally:
            if lock is not None:
                os.close(lock)
        self._req_copy_events[pending.req_id] = _Written()
