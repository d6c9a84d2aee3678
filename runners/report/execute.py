"""Execute the chapters' notebooks, one after another, in one kernel.

A kernel of its own for each chapter would import pandas, scipy and altair eight times and read the same ledgers eight
times: on two cores that is longer than the chapters' own work. Between two chapters the kernel forgets every name, so
each notebook is what it would be in a kernel of its own (the published ones are compared with that, tests/).
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from papermill.exceptions import PapermillExecutionError

from runners.core import paths, progress, remember
from runners.core.errors import UserError

KERNEL = "python3"
FORGET = "get_ipython().reset(new_session=True)"


def execute(names: Iterable[str], target: Path, parameters: dict[str, dict[str, Any]]) -> None:
    """Execute `notebooks/<name>.ipynb` of each name into the folder `target`.

    parameters: of each notebook, by its name. A chapter that fails does not keep the others from being executed.
    UserError with the name of the first chapter that failed at bad input; papermill's error for any other failure.
    """
    target.mkdir(parents=True, exist_ok=True)
    failed: list[tuple[str, PapermillExecutionError]] = []
    os.environ[remember.VARIABLE] = "1"  # the kernel inherits it
    kernel = AsyncKernelManager(kernel_name=KERNEL)
    try:
        for name in names:
            progress.say(f"chapter {name}")
            if kernel.has_kernel:
                _forget(kernel)
            try:
                _execute(name, target, parameters[name], kernel)
            except PapermillExecutionError as error:
                failed.append((name, error))
    finally:
        del os.environ[remember.VARIABLE]
        if kernel.has_kernel:
            run_sync(kernel.shutdown_kernel)(now=True)
    for name, error in failed:
        if error.ename == UserError.__name__:
            raise UserError(f"chapter {name}: {error.evalue}") from error
        raise error


def _execute(name: str, target: Path, parameters: dict[str, Any], kernel: AsyncKernelManager) -> None:
    papermill.execute_notebook(
        paths.ROOT / "notebooks" / f"{name}.ipynb",
        target / f"{name}.ipynb",
        parameters=parameters,
        kernel_name=KERNEL,
        progress_bar=False,
        km=kernel,
    )


def _forget(kernel: AsyncKernelManager) -> None:
    """Delete every name that the last notebook made; imported modules and what they keep stay."""
    cell = nbformat.v4.new_code_cell(FORGET)
    NotebookClient(nbformat.v4.new_notebook(cells=[cell]), km=kernel, kernel_name=KERNEL).execute()
