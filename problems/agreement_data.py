"""Which of the agreement data there are, prepared with tensorflow-datasets; see agreement_files.py for the files."""

import dataclasses
import pathlib

from problems import agreement_files
from ut_keras.errors import UserError

_SUBSET = "sva_linzen_subset_"
_SUBSET_ADVICE = (
    f"its file {agreement_files.SUBSET} (or .gz; non-commercial licence) is not part of this package; put it into a "
    "folder and name that with --manual_dir"
)


@dataclasses.dataclass(frozen=True)
class Found:
    """What is there.

    Attributes:
        dependencies: the prepared builder of Linzen's file with the splits train, dev and test; None: not there.
        others: {split: prepared builder} of the other evaluation data that are there.
        names: {"train" and splits of `others`: name of the prepared config}.
        reasons: {split: why it is not there, and what to do about it}.
    """

    dependencies: object
    others: dict
    names: dict
    reasons: dict


def prepare(root, manual_dir, settings, used):
    """Returns what is `Found` in `manual_dir`, in what was prepared before below `root`, or by download.

    Args:
        root: path of the data directory.
        manual_dir: folder with files that were put there by hand, or one of them; None: there is none.
        settings: {"train_percent", "dev_percent", "seed", ...}.
        used: `names` of a run; its data are taken where they are there.

    Raises:
        UserError: a file is broken, or `manual_dir` does not exist. A file that is not there is no error.
    """
    from problems import builders

    folder = None if manual_dir is None else pathlib.Path(manual_dir).expanduser()
    if folder is not None and not folder.exists():
        raise UserError(f"--manual_dir={folder} does not exist; {agreement_files.OFFICIAL.advice}")
    if folder is not None and folder.is_file():
        folder = folder.parent
    reasons = {}
    dependencies, reason = _dependencies(root, folder, settings, used.get("train"))
    if dependencies is None:
        reasons.update(dict.fromkeys(("train", "dev", "test"), reason))
    others = {}
    subset = _subset(root, folder, used.get("linzen_subset"))
    if subset is None:
        reasons["linzen_subset"] = _SUBSET_ADVICE
    else:
        others["linzen_subset"] = subset
    read = {"blimp": agreement_files.read_blimp}
    others["blimp"] = builders.prepare_text(root, "sva_blimp_two_paradigms", agreement_files.COLUMNS, read)
    there = {"train": dependencies, **others}
    names = {split: builder.builder_config.name for split, builder in there.items() if builder is not None}
    return Found(dependencies, others, names, reasons)


def rows(builder, split):
    """Yields the rows {column: str or int} of a split."""
    from problems import builders

    for values in builders.rows(builder, split, agreement_files.COLUMNS):
        yield dict(zip(agreement_files.COLUMNS, values))


def _dependencies(root, folder, settings, used):
    """Returns (builder or None, why there is none)."""
    from problems import builders
    from problems.sources import Source

    official = agreement_files.OFFICIAL
    shares = [settings[key] for key in ("train_percent", "dev_percent", "seed")]
    name = "sva_train{}_dev{}_seed{}".format(*shares)

    def read(source):
        return agreement_files.read_tsv(source, *shares)

    def prepared(by_hand):
        return builders.prepare_official(root, name, agreement_files.COLUMNS, read, official, by_hand, used)

    if folder is not None and Source(folder).has(agreement_files.TSV):
        return prepared(folder), None
    there = builders.prepared_config_names(builders.UtText, root)
    if used in there or builders.prepared_before(builders.UtText, name, root):
        return prepared(None), None
    if folder is not None:
        return None, f"--manual_dir={folder} has no {agreement_files.TSV} or .gz; {official.advice}"
    try:
        return prepared(None), None
    except UserError as error:
        return None, str(error)


def _subset(root, folder, used):
    from problems import builders
    from problems.sources import Source

    there = [name for name in builders.prepared_config_names(builders.UtText, root) if name.startswith(_SUBSET)]
    if folder is not None and Source(folder).has(agreement_files.SUBSET):
        source = Source(folder)
        name = _SUBSET + source.digest([agreement_files.SUBSET])
        read = {"linzen_subset": lambda: agreement_files.read_subset(source)}
        return builders.prepare_text(root, name, agreement_files.COLUMNS, read)
    name = used if used in there else there[0] if len(there) == 1 else None
    return None if name is None else builders.prepare_text(root, name, agreement_files.COLUMNS, {})
