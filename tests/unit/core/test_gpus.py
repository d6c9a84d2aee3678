"""GPUs where there is no driver, and where the driver hangs. Their values are tested with the pre-flight."""

import importlib
import threading

import pytest

from runners.core import gpus
from runners.core.errors import UserError


@pytest.fixture(autouse=True)
def looked_for_anew():
    gpus._library.cache_clear()
    yield
    gpus._library.cache_clear()


def test_without_a_driver_the_answers_are_empty(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    assert gpus.found() is None and gpus.paths() == {}
    sampler = gpus.Sampler()
    sampler.start()
    assert sampler.stop() is None


def test_a_driver_that_hangs_is_an_error_and_not_a_machine_without_gpus(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(importlib, "import_module", lambda name: over.wait(60))
    monkeypatch.setattr(gpus, "DRIVER_TIMEOUT_S", 0.1)
    with pytest.raises(UserError, match="GPU driver has not answered"):
        gpus.found()
    over.set()
