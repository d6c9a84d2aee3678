"""Execute the notebooks of the book's pages, one after another, in one kernel.

A kernel of its own for each page would import pandas, scipy and altair twenty times and read the same ledgers each
time: on two cores that is longer than the pages' own work. Between two pages the kernel forgets every name, so each
notebook is what it would be in a kernel of its own (nbval executes the published ones in one of their own).
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Page:
    """One notebook to execute: its source in notebooks/, the name of its executed copy, its parameters."""

    source: str
    name: str
    parameters: dict[str, Any]


def execute(pages: Iterable[Page], target: Path) -> None:
    """Execute each page into `<target>/<name>.ipynb`; one that fails does not keep the others from being executed.

    UserError that names the first page that failed at bad input; papermill's error for any other failure.
    """
    target.mkdir(parents=True, exist_ok=True)
    failed: list[tuple[str, PapermillExecutionError]] = []
    os.environ[remember.VARIABLE] = "1"  # the kernel inherits it
    kernel = AsyncKernelManager(kernel_name=KERNEL)
    try:
        for page in pages:
            progress.say(f"the book's page {page.name}")
            if kernel.has_kernel:
                _forget(kernel)
            try:
                _execute(page, target, kernel)
            except PapermillExecutionError as error:
                failed.append((page.name, error))
    finally:
        del os.environ[remember.VARIABLE]
        if kernel.has_kernel:
            run_sync(kernel.shutdown_kernel)(now=True)
    for name, failure in failed:
        if failure.ename == UserError.__name__:
            raise UserError(f"page {name}: {failure.evalue}") from failure
        raise failure


def _execute(page: Page, target: Path, kernel: AsyncKernelManager) -> None:
    papermill.execute_notebook(
        paths.ROOT / "notebooks" / f"{page.source}.ipynb",
        target / f"{page.name}.ipynb",
        parameters=page.parameters,
        kernel_name=KERNEL,
        progress_bar=False,
        km=kernel,
    )


def _forget(kernel: AsyncKernelManager) -> None:
    """Delete every name that the last notebook made; imported modules and what they keep stay."""
    cell = nbformat.v4.new_code_cell(FORGET)
    NotebookClient(nbformat.v4.new_notebook(cells=[cell]), km=kernel, kernel_name=KERNEL).execute()
