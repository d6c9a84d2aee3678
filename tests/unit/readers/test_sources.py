"""Opening texts: compressed by any name, folders, standard input, and what is no text."""

import bz2
import gzip
import io
import lzma
import sys

import pytest

from runners.core.errors import UserError
from runners.readers import sources

TEXT = "one\ntwo é\n"


@pytest.mark.parametrize("name", ["server.log.gz", "server.log"])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes], ids=["gz", "bz2", "xz", "plain"])
def test_a_compressed_file_is_known_by_its_bytes_and_not_by_its_name(tmp_path, pack, name):
    path = tmp_path / name
    path.write_bytes(pack(TEXT.encode()))
    (source,) = sources.of(str(path))
    assert source.text() == TEXT and list(source.lines()) == TEXT.splitlines(keepends=True)  # and read again
    assert source.at == path.stat().st_mtime


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_a_windows_shell_writes_other_encodings(tmp_path, encoding):
    path = tmp_path / "log"
    path.write_bytes(TEXT.encode(encoding))
    assert sources.of(str(path))[0].text() == TEXT


def test_a_folder_gives_its_files_by_name_without_hidden_ones(tmp_path):
    for name in ("b.prom", "a.log", ".hidden"):
        (tmp_path / name).write_text(name)
    (tmp_path / "below").mkdir()
    assert [s.text() for s in sources.of(str(tmp_path))] == ["a.log", "b.prom"]


class Piped(io.StringIO):
    """Standard input with its bytes."""

    def __init__(self, content):
        super().__init__()
        self.buffer = io.BytesIO(content)


def test_standard_input_is_read_once_and_kept(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Piped(TEXT.encode()))
    (source,) = sources.of("-")
    assert source.text() == source.text() == TEXT and (source.name, source.at) == ("standard input", None)


def test_a_terminal_is_no_input(monkeypatch):
    piped = Piped(b"")
    piped.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", piped)
    with pytest.raises(UserError, match="nothing is piped in"):
        sources.of("-")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(TEXT.encode() * 2000)[:-40], "cut off or damaged"),
        (lzma.compress(TEXT.encode() * 2000)[:-4], "cut off or damaged"),
        (b"PK\x03\x04rest", "is a zip archive; unpack it"),
        (b"PAR1rest", "is a Parquet file"),
        (bytes(200) + b"text", "is not a text"),
        (gzip.compress(bytes(200)), "is not a text"),
    ],
)
def test_what_is_no_text_is_one_sentence(tmp_path, content, words):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(UserError, match=words):
        sources.of(str(path))[0].text()


def test_some_zeros_of_a_power_cut_do_not_hide_a_log(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(TEXT.encode() * 20 + b"\0" * 8)
    assert sources.of(str(path))[0].text().startswith(TEXT)


def test_what_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="There is no file"):
        sources.of(str(tmp_path / "x"))
    with pytest.raises(UserError, match="There is no file in the folder"):
        sources.of(str(tmp_path))
