"""A prepared split as memory-mapped arrays: tokens, offsets and lengths.

Legend: N examples, T tokens of all examples one after the other, W words of a sentence, B batch, P padded length.

A packed directory appears under its name only when it is complete, and its name holds a digest of
every setting that shaped it: an interrupted packing is never used, and changed settings never find
an old one.
"""

import array
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import time

import numpy as np

from ut_keras.errors import UserError

_FORMAT = 2
_META = "meta.json"
_ARRAYS = ("tokens", "offsets", "lengths")
_STALE_SECONDS = 3600


@dataclasses.dataclass(frozen=True)
class Packed:
    """One feature of a split.

    Attributes:
        tokens: [T] ids, or [T, W] where a position is a sentence of W words (0: no word).
        offsets: [N] int64, where each example begins in `tokens`.
        lengths: [N] int32, positions of each example (end token included where there is one).
    """

    tokens: np.ndarray
    offsets: np.ndarray
    lengths: np.ndarray

    @classmethod
    def from_tokens(cls, tokens, lengths):
        """Returns the feature whose examples follow each other in `tokens`; ids take as few bytes as they need."""
        lengths = np.asarray(lengths, np.int32)
        ends = np.cumsum(lengths, dtype=np.int64)
        largest = int(tokens.max()) if tokens.size else 0
        dtype = next(d for d in (np.uint8, np.uint16, np.int32) if largest <= np.iinfo(d).max)
        return cls(np.ascontiguousarray(tokens, dtype), ends - lengths, lengths)

    @classmethod
    def from_padded(cls, rows, lengths):
        """Returns the feature whose example i is rows[i, :lengths[i]]; rows: [N, P]."""
        return cls.from_tokens(rows[np.arange(rows.shape[1]) < np.asarray(lengths)[:, None]], lengths)

    @property
    def width(self):
        """Words W of a position, or None where a position is one token."""
        return self.tokens.shape[1] if self.tokens.ndim == 2 else None

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        """Returns example `index`: [L] or [L, W] int32."""
        start = self.offsets[index]
        return self.tokens[start : start + self.lengths[index]].astype(np.int32)

    def gather(self, indices, length):
        """Returns the examples at `indices` [B], padded with 0 to `length` positions: [B, P] or [B, P, W] int32."""
        positions = np.arange(length)
        real = positions < self.lengths[indices, None]
        batch = np.zeros(real.shape + self.tokens.shape[1:], np.int32)
        batch[real] = self.tokens[(self.offsets[indices, None] + positions)[real]]
        return batch


class Rows:
    """The examples of a feature while they are made, one after the other, in few bytes each.

    Args:
        size: number of ids that there are.
    """

    def __init__(self, size):
        self.lengths = array.array("i")
        self._tokens = array.array("H" if size <= 1 << 16 else "i")

    def add(self, ids):
        """Adds an example, a list of ids."""
        self._tokens.extend(ids)
        self.lengths.append(len(ids))

    def packed(self):
        """Returns the `Packed` examples; it shares their memory."""
        return Packed.from_tokens(np.asarray(self._tokens), np.asarray(self.lengths))


@dataclasses.dataclass(frozen=True)
class PackedSplit:
    """The examples of a split.

    Attributes:
        name: the split's name.
        inputs: Packed, or None where the problem has no inputs.
        targets: Packed.
        counts: {what: number} of examples that were cut or dropped when the split was made.
        extras: {name: [N] int32}, what else is known of each example and no model sees (its difficulty, an
            alternative answer).
        digest: the fingerprint, where it is known already.
    """

    name: str
    inputs: Packed | None
    targets: Packed
    counts: dict = dataclasses.field(default_factory=dict)
    extras: dict = dataclasses.field(default_factory=dict)
    digest: str | None = None

    def __len__(self):
        return len(self.targets)

    @property
    def lengths(self):
        """[N, 2] int64: positions of the inputs (0 without inputs) and of the targets."""
        inputs = self.inputs.lengths if self.inputs is not None else np.zeros(len(self), np.int32)
        return np.stack([inputs, self.targets.lengths], axis=1).astype(np.int64)

    @property
    def fingerprint(self):
        """Digest of the content: equal for equal examples in equal order."""
        if self.digest:
            return self.digest
        digest = hashlib.sha256()
        for feature in (self.inputs, self.targets):
            if feature is not None:
                digest.update(repr((feature.tokens.shape, feature.tokens.dtype.str)).encode())
                digest.update(np.ascontiguousarray(feature.tokens))
                digest.update(np.ascontiguousarray(feature.lengths))
        for name in sorted(self.extras):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.extras[name], np.int32))
        return digest.hexdigest()

    def padded(self, count=None):
        """Returns {"inputs": array, "targets": array} of the first `count` examples (None: all), for Keras `fit`.

        Inputs are [N, L] or [N, S, W] int32 and targets [N, M] int32, padded with 0 to their longest.
        """
        indices = np.arange(len(self) if count is None else min(count, len(self)))
        features = {"inputs": self.inputs, "targets": self.targets}
        return {
            name: packed.gather(indices, int(packed.lengths[: len(indices)].max(initial=0)))
            for name, packed in features.items()
            if packed is not None
        }

    def example(self, index):
        """Returns {"inputs": ids, "targets": ids} of one example, without padding."""
        example = {"targets": self.targets[index]}
        if self.inputs is not None:
            example["inputs"] = self.inputs[index]
        return example


def open_or_pack(parent, name, settings, make):
    """Opens the packed splits that `settings` describe, after making them if they are not there.

    Args:
        parent: directory for packed data.
        name: first part of the directory's name, for people.
        settings: what JSON can hold; everything that shapes the result.
        make: function () -> ({split name: PackedSplit}, what JSON can hold), called if there are none.

    Returns:
        ({split name: PackedSplit}, the second value of `make`), with arrays mapped from the files.

    Raises:
        UserError: the directory cannot be written.
    """
    text = json.dumps([_FORMAT, settings], sort_keys=True)
    directory = pathlib.Path(parent) / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if not _complete(directory):
        splits, extra = make()
        try:
            _write(directory, splits, {"settings": settings, "extra": extra})
        except OSError as error:
            raise UserError(f"cannot write packed data to {directory}: {error.strerror or error}") from None
    meta = json.loads((directory / _META).read_text())
    return {split: _open(directory, split, entry) for split, entry in meta["splits"].items()}, meta["extra"]


def remove_stale(parent, pattern):
    """Removes the directories that match `pattern` and are old; a younger one may belong to a process at work."""
    for path in parent.glob(pattern):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path)


def _write(directory, splits, meta):
    directory.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(directory.parent, f"{directory.name}.incomplete.*")
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=f"{directory.name}.incomplete.", dir=directory.parent))
    try:
        temporary.chmod(0o755)
        meta["splits"] = {name: _save(temporary, name, split) for name, split in splits.items()}
        meta["bytes"] = {file.name: file.stat().st_size for file in sorted(temporary.iterdir())}
        (temporary / _META).write_text(json.dumps(meta, indent=1))
        if directory.exists() and not _complete(directory):
            shutil.rmtree(directory)
        try:
            os.rename(temporary, directory)
        except OSError:
            # Another process has put the same data there in the meantime.
            if not _complete(directory):
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _save(directory, name, split):
    features = {"inputs": split.inputs, "targets": split.targets}
    present = {key: feature for key, feature in features.items() if feature is not None}
    for key, feature in present.items():
        for part in _ARRAYS:
            np.save(directory / f"{name}.{key}.{part}.npy", getattr(feature, part))
    for key, values in split.extras.items():
        np.save(directory / f"{name}.extra.{key}.npy", np.asarray(values, np.int32))
    return {
        "features": sorted(present),
        "counts": split.counts,
        "extras": sorted(split.extras),
        "fingerprint": split.fingerprint,
    }


def _open(directory, name, entry):
    features = {
        key: Packed(*(_map(directory / f"{name}.{key}.{array}.npy") for array in _ARRAYS)) for key in entry["features"]
    }
    extras = {key: _map(directory / f"{name}.extra.{key}.npy") for key in entry["extras"]}
    inputs, targets = features.get("inputs"), features["targets"]
    return PackedSplit(name, inputs, targets, entry["counts"], extras, entry["fingerprint"])


def _map(path):
    array = np.load(path, mmap_mode="r", allow_pickle=False) if _has_content(path) else np.load(path)
    # A view as a plain array: the memmap class makes every small slice slow.
    return np.asarray(array)


def _has_content(path):
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return 0 not in read(file)[0]


def _complete(directory):
    try:
        sizes = json.loads((directory / _META).read_text())["bytes"]
        return all((directory / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError):
        return False
