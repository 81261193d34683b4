"""Chunks that are files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from chunkwright_store import ByteSuffix, FileSink, FileSource, _exchange
from chunkwright_store.files import WholeFiles


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "c" / "0"
    file.parent.mkdir()
    file.write_bytes(b"abcdef")
    return file


@pytest.fixture
def open_files(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Descriptors that were opened and not closed."""
    files: set[int] = set()
    really_open, really_close = os.open, os.close

    def recording_open(*args: Any, **options: Any) -> int:
        file = really_open(*args, **options)
        files.add(file)
        return file

    def recording_close(file: int) -> None:
        files.discard(file)
        really_close(file)

    monkeypatch.setattr(os, "open", recording_open)
    monkeypatch.setattr(os, "close", recording_close)
    return files


def test_ranges_suffixes_and_the_whole_file_can_be_read(path: Path) -> None:
    assert FileSource(path).get_ranges([(1, 3), ByteSuffix(2), None]) == [b"bc", b"ef", b"abcdef"]


def test_what_lies_beyond_the_end_is_left_out(path: Path) -> None:
    source = FileSource(path)
    assert source.get_ranges([(4, 9), (6, 9), (70, 90), ByteSuffix(99)]) == [b"ef", b"", b"", b"abcdef"]


def test_a_range_that_a_damaged_index_claims_allocates_no_more_than_the_file(path: Path) -> None:
    assert FileSource(path).get_ranges([(2, 2**62)]) == [b"cdef"]


def test_an_empty_file_is_there_and_has_no_bytes(path: Path) -> None:
    path.write_bytes(b"")
    assert FileSource(path).get_ranges([None, ByteSuffix(4)]) == [b"", b""]


@pytest.mark.parametrize("wrong", ["nowhere", "c", "c/0/0"])
def test_a_path_without_a_file_is_a_missing_chunk(path: Path, wrong: str) -> None:
    assert FileSource(path.parent.parent / wrong).get_ranges([None, (0, 2)]) == [None, None]


def test_ranges_come_from_one_file_until_the_source_is_closed(path: Path) -> None:
    source = FileSource(path)
    assert source.get_ranges([(0, 3)]) == [b"abc"]
    FileSink(path).set(b"ABCDEF")
    assert source.get_ranges([(3, 6)]) == [b"def"]
    source.close()
    assert source.get_ranges([(3, 6)]) == [b"DEF"]


def test_a_chunk_that_was_missing_stays_missing_until_the_source_is_closed(tmp_path: Path) -> None:
    source = FileSource(tmp_path / "0")
    assert source.get_ranges([None]) == [None]
    FileSink(tmp_path / "0").set(b"late")
    assert source.get_ranges([None]) == [None]
    source.close()
    assert source.get_ranges([None]) == [b"late"]


def test_no_descriptor_stays_open(path: Path, open_files: set[int]) -> None:
    source = FileSource(path)
    source.get_ranges([(0, 1)])
    assert len(open_files) == 1
    source.close()
    source.close()
    FileSource(path).get_ranges([None])
    FileSource(path.parent).get_ranges([None])
    FileSink(path).set(b"new")
    assert not open_files


def test_a_read_that_the_system_cuts_short_is_continued(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_read = os.pread
    monkeypatch.setattr("chunkwright_store.files._pread", lambda file, n, start: really_read(file, min(n, 2), start))
    assert FileSource(path).get_ranges([None, (1, 6)]) == [b"abcdef", b"bcdef"]


def test_a_file_that_shrinks_under_the_reader_is_short_and_no_hang(path: Path) -> None:
    source = FileSource(path)
    assert source.get_ranges([(0, 1)]) == [b"a"]
    os.truncate(path, 3)
    assert source.get_ranges([(1, 6)]) == [b"bc"]


def test_a_chunk_is_written_with_its_directories_and_nothing_beside_it(tmp_path: Path) -> None:
    FileSink(tmp_path / "a" / "b" / "0").set(memoryview(b"abc"))
    assert [file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()] == ["a/b/0"]
    assert (tmp_path / "a" / "b" / "0").read_bytes() == b"abc"


def test_a_write_that_fails_leaves_the_old_chunk_and_no_other_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: Any) -> int:
        raise OSError("disk full")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="disk full"):
        FileSink(path).set(b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"abcdef"
    assert list(path.parent.iterdir()) == [path]


def test_deleting_takes_a_file_a_directory_or_nothing(path: Path) -> None:
    FileSink(path).delete()
    assert not path.exists()
    FileSink(path).delete()
    FileSink(path.parent).delete()
    assert not path.parent.exists()


def test_new_files_may_be_read_as_the_process_allows_and_are_no_programs(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        FileSink(tmp_path / "0").set(b"abc")
    finally:
        os.umask(old)
    assert (tmp_path / "0").stat().st_mode & 0o777 == 0o640


@pytest.fixture(params=["names are exchanged", "files are renamed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With and without the call of the system that exchanges names."""
    if request.param == "files are renamed":
        monkeypatch.setattr(_exchange, "_RENAME", None)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_a_file_is_replaced_while_readers_keep_the_old_one(path: Path) -> None:
    with path.open("rb") as reader:
        FileSink(path).set(b"new")
        assert reader.read() == b"abcdef"
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("way")
def test_a_directory_is_not_replaced_by_a_file(path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        FileSink(path.parent).set(b"new")
    assert path.read_bytes() == b"abcdef"
    assert list(path.parent.parent.iterdir()) == [path.parent]


def test_a_link_is_replaced_and_what_it_leads_to_stays(path: Path) -> None:
    link = path.with_name("1")
    link.symlink_to(path)
    FileSink(link).set(b"new")
    assert (path.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"abcdef", b"new", False)


def test_whole_files_are_open_only_while_they_are_read(path: Path, open_files: set[int]) -> None:
    large = path.with_name("large")
    large.write_bytes(bytes(range(256)) * 1000)
    files = WholeFiles([path, path.with_name("missing"), path.parent, large])
    rows = files.rows()
    assert rows.is_stored
    found = [None if view is None else bytes(view) for view in rows.views()]
    assert found == [b"abcdef", None, None, bytes(range(256)) * 1000]
    assert files.present == [True, False, False, True]
    assert bytes(rows.view(0) or b"") == b"abcdef"
    assert not open_files


def test_a_whole_file_that_cannot_be_read_is_an_error_and_closed(
    path: Path, open_files: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: int, length: int, start: int) -> bytes:
        raise OSError("bad sector")

    monkeypatch.setattr("chunkwright_store.files._pread", broken)
    with pytest.raises(OSError, match="bad sector"):
        list(WholeFiles([path]).rows().views())
    assert not open_files
