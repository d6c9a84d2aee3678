"""The program itself: a copied checkout does not run the other one's code in silence."""

from runners import __main__
from runners.core import paths


def test_a_copied_checkout_is_told_and_its_own_is_not(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    copy = tmp_path / "copy"
    (copy / "runners").mkdir(parents=True)
    (copy / "runners" / "__main__.py").write_text("")
    said = __main__.started_from_another_checkout(str(copy / ".venv" / "bin" / "specverdict"))
    assert said is not None and f"belongs to the checkout at {paths.ROOT}" in said and "make plan" in said
    for program in (paths.ROOT / ".venv" / "bin" / "specverdict", "/usr/local/bin/specverdict", "specverdict", "-c"):
        assert __main__.started_from_another_checkout(str(program)) is None


def test_the_commands_of_make_name_no_script_of_the_environment():
    """A script's first line names the folder that it was installed in; only compiled programs may be called so."""
    called = [
        word
        for line in (paths.ROOT / "Makefile").read_text().splitlines()
        for word in line.split()
        if word.lstrip("@").startswith("$(VENV)/bin/") and not word.endswith("/python")
    ]
    assert {word.rsplit("/", 1)[1] for word in called} <= {"ruff", "uv", "lint-imports"}
    assert "@$(VENV)/bin/lint-imports" not in called, "by the interpreter"
