"""Do the hidden states that a drafter gets when served agree with those it was trained on?

Reads captured states (scripts/capture_*.py): shards of float16 [tokens, boundaries, hidden], and a manifest that names
each boundary "input of layer i". All distances are relative: |a - b| / |b| in the L2 norm for each token, then the
mean. Cosines would not do: a residual stream keeps a large common part, so cosines of neighbouring layers are all
near 1.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file

from runners.core.errors import UserError


@dataclass(frozen=True)
class States:
    """`values` [tokens, boundaries, hidden] float32; `boundaries`: i is the input of layer i; `lengths`: tokens of each
    sequence.
    """

    source: str
    boundaries: list[int]
    values: np.ndarray
    lengths: np.ndarray

    def at(self, boundary: int) -> np.ndarray:
        """[tokens, hidden] float32 at one boundary; UserError when it was not captured."""
        if boundary not in self.boundaries:
            raise UserError(f"The states of {self.source} hold no input of layer {boundary}; capture it first.")
        return self.values[:, self.boundaries.index(boundary)]


def captured_boundaries(folder: Path) -> list[int]:
    """The boundaries whose states the folder holds, in the order of its columns: i is the input of layer i."""
    manifest = json.loads((folder / "manifest.json").read_text())
    return [int(name.rsplit(" ", 1)[1]) for name in manifest["boundaries"]]


def load(folder: Path) -> States:
    """Read captured states; UserError when there are none, or when the manifest and the shards disagree."""
    manifest_file = folder / "manifest.json"
    if not manifest_file.is_file():
        raise UserError(f"No captured states in {folder} (manifest.json is missing); capture them first.")
    manifest = json.loads(manifest_file.read_text())
    boundaries = captured_boundaries(folder)
    shards = [load_file(p) for p in sorted(folder.glob("shard-*.safetensors"))]
    values = np.concatenate([s["states"] for s in shards]).astype(np.float32)
    if values.shape[:2] != (manifest["tokens"], len(boundaries)):
        raise UserError(
            f"{folder} holds {values.shape[0]} tokens at {values.shape[1]} boundaries, but its manifest says "
            f"{manifest['tokens']} at {len(boundaries)}; delete the folder and capture again."
        )
    return States(manifest["source"], boundaries, values, np.concatenate([s["lengths"] for s in shards]))


def only(states: States, boundaries: list[int]) -> States:
    """The same states at these boundaries alone."""
    values = np.stack([states.at(b) for b in boundaries], axis=1)
    return States(states.source, list(boundaries), values, states.lengths)


def without_first(states: States) -> np.ndarray:
    """[tokens] bool: False for the first token of each sequence.

    That token is an attention sink: its states are a hundred times larger and would dominate every mean.
    """
    keep = np.ones(int(states.lengths.sum()), dtype=bool)
    keep[np.concatenate([[0], np.cumsum(states.lengths)[:-1]])] = False
    return keep


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Mean over tokens of |a - b| / |b|; a, b [tokens, hidden]."""
    return float(np.mean(np.linalg.norm(a - b, axis=-1) / np.linalg.norm(b, axis=-1)))


def slot_map(captured: States, reference: States) -> pd.DataFrame:
    """Every captured slot against every boundary of the reference: columns slot, boundary, distance.

    slot: the layer id under which the source captured. The boundary with the smallest distance is what it really is.
    """
    keep = without_first(reference)
    rows = [
        {
            "slot": slot,
            "boundary": boundary,
            "distance": distance(captured.at(slot)[keep], reference.at(boundary)[keep]),
        }
        for slot in captured.boundaries
        for boundary in reference.boundaries
    ]
    return pd.DataFrame(rows)


def offsets(slots: pd.DataFrame) -> pd.DataFrame:
    """One row a slot of one source: columns slot, nearest (boundary), offset (of that from the id), distance, margin.

    margin: the second-smallest distance over the smallest (1 would be a tie).
    """
    rows = []
    for slot, group in slots.groupby("slot"):
        ordered = group.sort_values("distance")
        best, second = ordered.iloc[0], ordered.iloc[1]
        rows.append(
            {
                "slot": int(slot),
                "nearest": int(best["boundary"]),
                "offset": int(best["boundary"]) - int(slot),
                "distance": float(best["distance"]),
                "margin": float(second["distance"] / max(best["distance"], 1e-9)),
            }
        )
    return pd.DataFrame(rows)


def offsets_by_source(slots: pd.DataFrame) -> pd.DataFrame:
    """`offsets` of each source of a table of slot maps; empty for an empty one."""
    parts = [offsets(group).assign(source=source) for source, group in slots.groupby("source")]
    return pd.concat(parts) if parts else pd.DataFrame(columns=["source", "slot", "nearest", "offset", "margin"])


def drift(captured: States, reference: States) -> pd.DataFrame:
    """One row a boundary: columns source, boundary, drift, to_next.

    drift: distance of the source from the reference. to_next: distance from there to the reference's next boundary, the
    scale on which a drift is large or small; None at the last.
    """
    keep = without_first(reference)
    rows = []
    for boundary in captured.boundaries:
        row = {
            "source": captured.source,
            "boundary": boundary,
            "drift": distance(captured.at(boundary)[keep], reference.at(boundary)[keep]),
            "to_next": None,
        }
        if boundary + 1 in reference.boundaries:
            row["to_next"] = distance(reference.at(boundary + 1)[keep], reference.at(boundary)[keep])
        rows.append(row)
    return pd.DataFrame(rows)
