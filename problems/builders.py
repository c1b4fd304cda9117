"""The tensorflow-datasets builders, and how one is prepared: quietly, once, atomically.

A config's name holds everything that shapes its data, so changed settings are another dataset. All
features are text: the datasets are readable by any program, and a problem packs ids from them.
"""

import contextlib
import dataclasses
import functools
import io
import os
import pathlib
import sys
import time
import urllib.request
from collections.abc import Callable

import numpy as np
import tensorflow_datasets as tfds
from absl import logging as absl_logging

from problems import algorithmic_strings, babi_files, packed, sources
from ut_keras.errors import UserError

_TIMEOUT_SECONDS = 20
BY_HAND = "{}_manual_"  # how the names of data begin that were put there by hand; a digest of them follows


@dataclasses.dataclass(kw_only=True)
class AlgorithmicConfig(tfds.core.BuilderConfig):
    """Settings of `UtAlgorithmic`; see `algorithmic_strings.Task`, whose splits it names."""

    task: algorithmic_strings.Task


class UtAlgorithmic(tfds.core.GeneratorBasedBuilder):
    """Strings of symbols and what becomes of them: copied, reversed, or added."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        text = tfds.features.Text
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict({"inputs": text(), "targets": text()}),
            supervised_keys=("inputs", "targets"),
        )

    def _split_generators(self, dl_manager):
        # tensorflow-datasets refuses a split without examples.
        return {name: self._generate_examples(name) for name, size in self.builder_config.task.sizes if size}

    def _generate_examples(self, split):
        yield from enumerate(
            {"inputs": source, "targets": target} for source, target in self.builder_config.task.split(split)
        )


@dataclasses.dataclass(kw_only=True)
class BabiConfig(tfds.core.BuilderConfig):
    """Settings of `UtBabi`.

    Args:
        tasks: task numbers.
        size: "1k" or "10k".
        dev_percent: share of the training stories that becomes the dev split.
        seed: which stories these are.
        examples: {split: list of examples} as of `babi_files.read_splits`; None: download the files.
    """

    tasks: tuple
    size: str
    dev_percent: int
    seed: int
    examples: dict | None


class UtBabi(tfds.core.GeneratorBasedBuilder):
    """bAbI: stories (one sentence a line), a question each, and its answer."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        text = tfds.features.Text
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(
                {"task": tfds.features.Scalar(np.int64), "story": text(), "question": text(), "answer": text()}
            ),
            homepage="https://research.facebook.com/downloads/babi/",
            license="CC BY 3.0, (c) 2015-present Facebook, Inc.",
            citation="Weston et al.: Towards AI-Complete Question Answering, arXiv:1502.05698",
        )

    def _split_generators(self, dl_manager):
        config, splits = self.builder_config, self.builder_config.examples
        if splits is None:
            settings = (config.tasks, config.size, config.dev_percent, config.seed)
            splits = _from_download(
                dl_manager, babi_files.OFFICIAL, lambda source: babi_files.read_splits(source, *settings)
            )
        return {name: enumerate(examples) for name, examples in splits.items()}

    def _generate_examples(self):
        raise AssertionError("_split_generators gives generators")


@dataclasses.dataclass(kw_only=True)
class TextConfig(tfds.core.BuilderConfig):
    """Settings of `UtText`.

    Args:
        columns: {column: str or int}, the type of each.
        splits: function (download manager) -> {split: function () -> iterable of {column: value}}; not called where
            the data are prepared.
    """

    columns: dict
    splits: Callable | None = None


class UtText(tfds.core.GeneratorBasedBuilder):
    """Rows of text and numbers, whatever they mean: the problems' own files and the datasets that are lines of text."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        kinds = {str: tfds.features.Text, int: lambda: tfds.features.Scalar(np.int64)}
        columns = {name: kinds[kind]() for name, kind in self.builder_config.columns.items()}
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(columns), disable_shuffling=True, description="rows of text"
        )

    def _split_generators(self, dl_manager):
        return {name: enumerate(rows()) for name, rows in self.builder_config.splits(dl_manager).items()}

    def _generate_examples(self):
        raise AssertionError("_split_generators gives generators")


def prepare_text(root, name, columns, splits):
    """Returns the prepared `UtText` builder whose config is called `name`.

    Args:
        root: path of the data directory.
        name: everything that shapes the data, without "/" and blanks.
        columns: {column: str or int}.
        splits: {split: function () -> iterable of {column: value}}, called where the data are not there yet.

    Raises:
        UserError: a file or directory is at fault.
    """
    return prepare(UtText, TextConfig(name=name, columns=columns, splits=lambda _: splits), root)


def prepare_official(root, name, columns, read, official, manual_dir=None, used=None):
    """Returns the prepared builder of a published dataset.

    From `manual_dir`, where given and there; else from what was prepared before; else by download.

    Args:
        root, columns: as of `prepare_text`.
        name: the settings; whether it was downloaded, or a digest of what was put there by hand, is added.
        read: function (Source) -> {split: iterable of rows}.
        official: `sources.Official`.
        manual_dir: where the file, or what it holds, was put by hand; or None.
        used: name of the config that a run was trained on; taken where it is there and `manual_dir` has no files
            (where it has other ones, `Problem.prepare` refuses them).

    Raises:
        UserError: a file is missing or broken, or cannot be downloaded; the message says the way out.
    """
    there = prepared_config_names(UtText, root)
    source = None
    if manual_dir is not None:
        try:
            source = sources.find(manual_dir, official)
        except UserError:
            if used not in there:
                raise
    if source is not None:
        chosen = BY_HAND.format(name) + source.digest(official.wanted(source))
        rows = read(source) if chosen not in there else {}
        return prepare_text(root, chosen, columns, {split: functools.partial(iter, r) for split, r in rows.items()})
    if used in there:
        return prepare(UtText, TextConfig(name=used, columns=columns), root)
    known = prepared_before(UtText, name, root)
    if known is not None:
        return prepare(UtText, TextConfig(name=known, columns=columns), root)
    require(official)

    def download(dl_manager):
        rows = _from_download(dl_manager, official, read)
        return {split: functools.partial(iter, r) for split, r in rows.items()}

    return prepare(UtText, TextConfig(name=name, columns=columns, splits=download), root)


def prepare_catalogued(name, root, official):
    """Returns a prepared builder of tensorflow-datasets' own catalogue.

    Args:
        name: "dataset/config".
        root: path of the data directory.
        official: `sources.Official` of what it downloads.

    Raises:
        UserError: it cannot be downloaded, or the directory is at fault.
    """
    try:
        with _quiet():
            builder = tfds.builder(name, data_dir=str(root))
            if not builder.is_prepared():
                require(official)
                print(f"preparing {builder.info.full_name} in {root} ...", file=sys.stderr, flush=True)
                builder.download_and_prepare()
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"cannot prepare {name} in {root}: {error.strerror or error}") from None
    except Exception as error:  # a checksum, an archive, an answer of the server
        raise _no_download(official, error) from None
    return builder


def data_root(data_dir):
    """Returns the directory for data as a path: `data_dir`, or the default of tensorflow-datasets for None."""
    return pathlib.Path(os.path.expanduser(data_dir if data_dir is not None else tfds.core.constants.DATA_DIR))


def prepare(builder_class, config, root):
    """Returns the prepared builder; makes its data below `root` if they are not there.

    Raises:
        UserError: a file or directory is at fault.
    """
    made_root = not root.exists()
    try:
        with _quiet():
            builder = _builder(builder_class, config, root)
            if not builder.is_prepared():
                start = time.monotonic()
                print(f"preparing {builder.info.full_name} in {root} ...", file=sys.stderr, flush=True)
                packed.remove_stale(pathlib.Path(builder.data_path).parent, "incomplete.*")
                builder.download_and_prepare()
                print(f"prepared in {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    except OSError as error:
        with _quiet():
            builder = _builder(builder_class, config, root)
        # Another process may have put the same data there in the meantime.
        if not builder.is_prepared():
            raise UserError(f"cannot prepare data in {root}: {error.strerror or error}") from None
    finally:
        _remove_empty(root, builder_class.name, config.name, made_root)
    return builder


def prepared_config_names(builder_class, root):
    """Returns the names of the configs of `builder_class` that are prepared below `root`."""
    version = str(builder_class.VERSION)
    return sorted(path.parent.parent.name for path in root.glob(f"{builder_class.name}/*/{version}/dataset_info.json"))


def prepared_before(builder_class, name, root):
    """Returns the config of the settings `name` that is prepared below `root`, downloaded or by hand; None: none is.

    Raises:
        UserError: they were prepared by hand from several folders, and not downloaded.
    """
    there = prepared_config_names(builder_class, root)
    by_hand = [other for other in there if other.startswith(BY_HAND.format(name))]
    if name in there:
        return name
    if len(by_hand) > 1:
        raise UserError(f"{root} has data from {len(by_hand)} manual folders; say which with --manual_dir")
    return next(iter(by_hand), None)


def rows(builder, split, columns, batch_size=1000):
    """Yields the examples of a split in their stored order, each a tuple of the values of `columns`, text as str."""
    for batch in read(builder, split, batch_size):
        values = (batch[name] for name in columns)
        texts = ([v.decode("utf-8") for v in c] if c.dtype == object else c.tolist() for c in values)
        yield from zip(*texts, strict=True)


def read(builder, split, batch_size=1000):
    """Yields the examples of a split in their stored order, as {feature: [batch_size] numpy array}."""
    dataset = builder.as_dataset(split=split, shuffle_files=False, batch_size=batch_size)
    try:
        yield from dataset.as_numpy_iterator()
    except Exception as error:
        raise UserError(
            f"the prepared data in {builder.data_path} are damaged ({type(error).__name__}); delete that directory"
        ) from None


def require(official):
    """Asks for the file of `sources.Official` once; tensorflow-datasets would try for minutes.

    Raises:
        UserError: it cannot be downloaded; the message says what to do instead.
    """
    try:
        with urllib.request.urlopen(urllib.request.Request(official.url, method="HEAD"), timeout=_TIMEOUT_SECONDS):
            pass
    except OSError as error:
        raise _no_download(official, getattr(error, "reason", None) or error) from None


def _builder(builder_class, config, root):
    return builder_class(config=config, data_dir=str(root), file_format="tfrecord")


def _from_download(dl_manager, official, read):
    """Returns read(Source of the downloaded file); a file that cannot be read is not kept for the next time."""
    try:
        path = pathlib.Path(dl_manager.download(official.url))
    except Exception as error:
        raise _no_download(official, error) from None
    try:
        return read(sources.Source(path))
    except UserError as error:
        for file in (path, path.with_name(path.name + ".INFO")):
            file.unlink(missing_ok=True)
        raise _no_download(official, error) from None


def _no_download(official, reason):
    return UserError(f"cannot download {official.url} ({' '.join(str(reason).split())}); {official.advice}")


@contextlib.contextmanager
def _quiet():
    """tensorflow-datasets prints to standard output, which holds our results, and draws bars."""
    from tensorflow_datasets.core.utils import tqdm_utils

    verbosity, bars = absl_logging.get_verbosity(), tqdm_utils._active
    absl_logging.set_verbosity(absl_logging.ERROR)
    tfds.disable_progress_bar()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        absl_logging.set_verbosity(verbosity)
        tfds.display_progress_bar(bars)


def _remove_empty(root, dataset, config, made_root):
    """Removes the directories that tensorflow-datasets left empty, as it does after an error."""
    names = ["downloads/extracted", f"downloads/{dataset}", "downloads", f"{dataset}/{config}", dataset]
    for directory in [root / name for name in names] + [root] * made_root:
        with contextlib.suppress(OSError):
            directory.rmdir()
