"""The server that breaks in one way, chosen by the path; one for all tests."""

import threading

import faulty
import pytest


@pytest.fixture(scope="session")
def server():
    """Its address; a fault's name follows it."""
    running = faulty.Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.closing.set()
    running.shutdown()
    running.server_close()
    thread.join()
