"""Files are written whole or not at all: modes, links, devices, leftovers, and what the system refuses."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import adaptinf.files as files
from adaptinf.errors import FileError
from adaptinf.files import atomic_write, same_file


def write(path: Path, text: str) -> None:
    atomic_write(path, lambda file: file.write(text.encode()))


def test_a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    path, usual = tmp_path / "file", tmp_path / "usual"
    usual.touch()
    write(path, "old")
    assert path.stat().st_mode == usual.stat().st_mode
    for mode in (0o600, 0o664, 0o755):
        path.chmod(mode)
        write(path, "new")
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == "new"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "usual"]


def test_a_private_file_is_never_open_to_others(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, "old")
    path.chmod(0o600)
    seen = []
    atomic_write(path, lambda file: seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode)))
    assert seen == [0o600]


def test_the_owner_is_kept_where_the_system_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write(path, "old")
    asked = []

    def chown(place: Any, owner: int, group: int) -> None:
        asked.append((owner, group))
        raise PermissionError

    monkeypatch.setattr(os, "chown", chown)
    write(path, "new")
    assert asked == [(path.stat().st_uid, path.stat().st_gid)]
    assert path.read_text() == "new"


def test_links_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("middle")
    (tmp_path / "middle").symlink_to("folder/file")
    write(tmp_path / "link", "one")
    write(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "file").read_text() == "two"


def test_devices_and_pipes_are_written_as_they_are(tmp_path: Path) -> None:
    write(Path(os.devnull), "nothing")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write(tmp_path / "pipe", "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    with (tmp_path / "file").open("wb") as file:
        write(Path(f"/dev/fd/{file.fileno()}"), "by number")
    assert (tmp_path / "file").read_text() == "by number"


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ValueError("odd"), KeyboardInterrupt()]
)
def test_what_stops_the_writer_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    write(path, "old")

    def fill(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    with pytest.raises(FileError if isinstance(error, OSError) else type(error)) as caught:
        atomic_write(path, fill)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    if isinstance(error, OSError):
        assert str(caught.value) == f"{path} cannot be written: No space left on device"


def test_a_protected_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write(path, "old")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(FileError, match="it is write-protected"):
        write(path, "new")
    assert path.read_text() == "old"


def test_places_where_no_file_can_go(tmp_path: Path) -> None:
    for path, message in [
        (tmp_path, "it is a directory"),
        (tmp_path / "absent" / "file", "No such file or directory"),
        (Path("a\0b"), "its name contains a NUL character"),
    ]:
        with pytest.raises(FileError, match=message):
            write(path, "text")


def test_leftovers_are_removed_when_they_are_old(tmp_path: Path) -> None:
    left = [tmp_path / f".file.{letter * 32}.tmp" for letter in "ab"] + [tmp_path / ".other.tmp"]
    for path in left:
        path.write_text("half")
    os.utime(left[0], (time.time() - 100_000,) * 2)
    os.utime(left[2], (time.time() - 100_000,) * 2)
    write(tmp_path / "file", "text")
    assert [path.exists() for path in left] == [False, True, True]


@pytest.mark.parametrize("name", ["x" * 255, "漢" * 85])
def test_names_up_to_the_systems_limit_can_be_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path, "text")
    assert path.read_text() == "text"


def test_names_that_lead_to_one_file(tmp_path: Path) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    file.touch()
    (tmp_path / "hard").hardlink_to(file)
    (tmp_path / "soft").symlink_to("file")
    (tmp_path / "to nothing").symlink_to("other")
    for name in ("file", "hard", "soft", "../" + tmp_path.name + "/file"):
        assert same_file(file, tmp_path / name)
    assert not same_file(file, other)
    assert same_file(tmp_path / "to nothing", other)


def test_the_folder_is_synced_after_the_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            files.os, name, lambda *a, name=name, real=real: (steps.append(name), real(*a))[1]
        )
    write(tmp_path / "file", "text")
    assert steps == ["fsync", "replace", "fsync"]


def test_a_stream_that_leads_to_a_file_keeps_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("before\n")
    with path.open("a") as file:
        write(Path(f"/dev/fd/{file.fileno()}"), "after\n")
    assert path.read_text() == "before\nafter\n"


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(FileError, match="circle cannot be written: Too many levels of symbolic links"):
        write(circle, "new")
