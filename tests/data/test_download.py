"""Fetching, from files on this disk: what is there is kept, what is wrong is thrown away."""

import hashlib
import io
import tarfile

import pytest

from confide.data.sets import download as downloads


def serve(tmp_path, monkeypatch, content, name="a.bin", md5=None):
    source = tmp_path / "server" / name
    source.parent.mkdir(exist_ok=True)
    source.write_bytes(content)
    sums = {source.as_uri(): md5 or hashlib.md5(content).hexdigest()}
    monkeypatch.setattr(downloads, "SOURCES", {"mnist": sums})
    return source


def test_a_file_is_fetched_once(tmp_path, monkeypatch):
    source = serve(tmp_path, monkeypatch, b"content")
    (path,) = downloads.download("mnist", tmp_path / "root" / "new")
    assert path.read_bytes() == b"content"
    source.unlink()
    assert downloads.download("mnist", path.parent) == [path]
    path.write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"a.bin cannot be fetched: .* Put its file into '.*new' yourself"):
        downloads.download("mnist", path.parent)


def test_a_file_with_another_sum_is_not_kept(tmp_path, monkeypatch):
    serve(tmp_path, monkeypatch, b"changed", md5="0" * 32)
    with pytest.raises(
        ValueError, match=rf"gave a file with the MD5 sum \w+, not {'0' * 32}: it is broken or was changed"
    ):
        downloads.download("mnist", tmp_path / "root")
    assert not list((tmp_path / "root").iterdir())


def test_archives_are_unpacked_and_cannot_leave_their_folder(tmp_path, monkeypatch):
    def archive(name):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            member = tarfile.TarInfo(name)
            member.size = 2
            tar.addfile(member, io.BytesIO(b"hi"))
        return buffer.getvalue()

    serve(tmp_path, monkeypatch, archive("inner/file"), "a.tar.gz")
    downloads.download("mnist", tmp_path / "root")
    assert (tmp_path / "root/inner/file").read_bytes() == b"hi"
    serve(tmp_path, monkeypatch, archive("../escaped"), "a.tar.gz")
    with pytest.raises(ValueError, match=r"a.tar.gz' cannot be unpacked: .* outside the destination"):
        downloads.download("mnist", tmp_path / "other")
    assert not (tmp_path / "escaped").exists()


def test_what_has_no_address_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"acdc cannot be downloaded from here: .* are mnist, fashion-mnist, cifar10"):
        downloads.download("acdc", tmp_path)
    assert not list(tmp_path.iterdir())
