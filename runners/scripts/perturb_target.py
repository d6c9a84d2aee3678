"""A sibling of the target: the same architecture, every layer's matrices moved by seeded noise.

Runs inside the reference environment. Stands for a fine-tuned version of the model: near enough to speak alike, far
enough that a drafter made for the one is not made for the other. Embeddings, norms and the LM head stay.

    python perturb_target.py MODEL_FOLDER OUTPUT_FOLDER SCALE SEED
SCALE: standard deviation of the noise over that of each matrix.
"""

import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def main(folder: Path, output: Path, scale: float, seed: int) -> None:
    shutil.copytree(folder, output)
    tensors = load_file(folder / "model.safetensors")
    generator = torch.Generator().manual_seed(seed)
    for name in sorted(tensors):
        value = tensors[name]
        if ".layers." in name and value.ndim == 2:
            noise = torch.randn(value.shape, generator=generator)
            tensors[name] = value + scale * value.std() * noise
    save_file(tensors, output / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
