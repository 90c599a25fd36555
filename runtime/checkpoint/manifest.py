"""The manifest: the format of a checkpoint as frozen data, to bytes and back.

``{"checksum":"<sha256 of the content's bytes>","content":{...}}`` and a newline. Reading judges
everything before anything is believed: the checksum, the version, every type, every range; that
the tensors of a data file lie one after another without overlap or hole up to its end.

Invariants: `decode(encode(m)) == m`; a decoded manifest is consistent in itself; sizes in it are
claims that the reader compares with the files before it allocates.
Not here: files.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, NoReturn

from ...compiler.errors import TracemillError, error
from ...compiler.records import dataclass
from ...compiler.types import DType, TensorType, dtype_named

NAME = "manifest.json"
VERSION = 1
FORMAT = "tracemill-checkpoint"
DATA_NAME = re.compile(r"data-[0-9a-f]{16}-[0-9]{5}\.safetensors")
MAX_BYTES = 1 << 28  # a manifest larger than this is refused unread

_HEAD = b'{"checksum":"'
_MIDDLE = b'","content":'
_TAIL = b"}\n"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file: its size, and its first `header` bytes with their sha256."""

    name: str
    size: int
    header: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: `size` bytes at `offset` of data file number `file`, C order, little-endian."""

    name: str
    type: TensorType
    file: int
    offset: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of a checkpoint. sequence: one more than that of the checkpoint it replaced."""

    sequence: int
    files: tuple[DataFile, ...]
    tensors: tuple[Tensor, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)


def encode(manifest: Manifest) -> bytes:
    """The bytes of the manifest. ArgError for metadata that JSON cannot say."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "sequence": manifest.sequence,
        "files": [[f.name, f.size, f.header, f.sha256] for f in manifest.files],
        "tensors": [
            [t.name, t.type.dtype.name, list(t.type.shape), t.file, t.offset, t.size, t.sha256]
            for t in manifest.tensors
        ],
        "metadata": dict(manifest.metadata),
    }
    try:
        body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise error("TM203", f"metadata of a checkpoint must be plain JSON: {problem}") from None
    return _HEAD + hashlib.sha256(body).hexdigest().encode() + _MIDDLE + body + _TAIL


def decode(data: bytes, place: str) -> Manifest:
    """The manifest in `data`, judged. Raises DataLossError, VersionError, UnsafeError."""
    body = _checked_body(data, place)
    try:
        content = json.loads(body, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
        return _judged(content)
    except TracemillError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as problem:
        raise damaged(place, f"it is malformed: {problem}") from None


def damaged(place: str, why: str) -> TracemillError:
    """The error for a checkpoint file that is not as it was written."""
    return error("TM511", f"{place}: {why}", hint="restore another checkpoint; this one lost data")


def refuse_foreign(head: bytes, place: str) -> None:
    """UnsafeError for the beginning of a file that would have to be executed to be read."""
    kinds = {b"\x80": "a pickle", b"PK": "a zip archive", b"\x93NUMPY": "a NumPy file",
             b"\x1f\x8b": "a gzip archive"}  # fmt: skip
    for magic, kind in kinds.items():
        if head.startswith(magic):
            raise error(
                "TM504",
                f"{place} is {kind}, not a checkpoint; it was not opened",
                hint="load it with the library that wrote it, in a process you can afford to lose",
            )


def _checked_body(data: bytes, place: str) -> bytes:
    refuse_foreign(data[:8], place)
    start = len(_HEAD) + 64 + len(_MIDDLE)
    digest = data[len(_HEAD) : len(_HEAD) + 64]
    body = data[start : -len(_TAIL)]
    if data != _HEAD + digest + _MIDDLE + body + _TAIL:
        raise damaged(place, f"it is cut or altered ({len(data)} bytes)")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise damaged(place, "its checksum does not match")
    return body


def _judged(content: Any) -> Manifest:
    if content["format"] != FORMAT:
        raise ValueError("it is of another format")
    version = _number(content["version"])
    if version != VERSION:
        raise error(
            "TM503",
            f"the checkpoint has format version {version}, this release reads {VERSION}",
            hint="use the release that wrote it, or a newer one",
        )
    if not isinstance(content["metadata"], dict):
        raise ValueError("metadata is no object")
    files = tuple(_data_file(*row) for row in content["files"])
    tensors = tuple(_tensor(len(files), *row) for row in content["tensors"])
    if len({f.name for f in files}) != len(files) or len({t.name for t in tensors}) != len(tensors):
        raise ValueError("a name occurs twice")
    for index, file in enumerate(files):
        _judge_layout(file, [t for t in tensors if t.file == index])
    return Manifest(_number(content["sequence"]), files, tensors, content["metadata"])


def _judge_layout(file: DataFile, tensors: list[Tensor]) -> None:
    end = file.header
    for tensor in sorted(tensors, key=lambda t: (t.offset, t.size)):
        if tensor.offset != end:
            raise ValueError(f"{file.name} has a hole or an overlap before {tensor.name!r}")
        end += tensor.size
    if end != file.size:
        raise ValueError(f"{file.name} has {file.size} bytes, its tensors end at {end}")


def _data_file(name: Any, size: Any, header: Any, sha256: Any) -> DataFile:
    if not isinstance(name, str) or not DATA_NAME.fullmatch(name):
        raise ValueError("a data file has a name that no save gives")
    return DataFile(name, _number(size), _number(header), _digest(sha256))


def _tensor(
    files: int, name: Any, dtype: Any, shape: Any, file: Any, offset: Any, size: Any, sha256: Any
) -> Tensor:
    if not isinstance(name, str) or not isinstance(shape, list) or len(shape) > 64:
        raise ValueError("a tensor has no proper name or shape")
    element: DType = dtype_named(dtype)
    extents = tuple(_number(extent) for extent in shape)
    if _number(file) >= files:
        raise ValueError(f"{name!r} is in a data file that is not listed")
    if math.prod(extents) * element.itemsize != _number(size):
        raise ValueError(f"{name!r} has a size that does not fit its shape")
    type = TensorType(element, extents)
    return Tensor(name, type, file, _number(offset), size, _digest(sha256))


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError("a number is out of range")
    return value


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ValueError("a checksum is malformed")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key occurs twice")
    return made


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
