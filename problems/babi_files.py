"""The files of the bAbI tasks: where they are, and what stands in them.

Format (the release's README): every line starts with a number that goes back to 1 where a new story
starts. `ID text` is a statement, `ID question TAB answer TAB numbers of the supporting statements` a
question about all statements above it in its story.
"""

import collections
import importlib.resources
import io
import pathlib

import numpy as np

from problems import sources, textio
from problems.sources import Official, Source
from ut_keras.errors import UserError

FOLDERS = {"1k": "en", "10k": "en-10k"}

_OTHER_FOLDERS = ("en-valid", "en-valid-10k", "hn", "hn-10k", "shuffled", "shuffled-10k")
_STEMS = (
    "qa1_single-supporting-fact",
    "qa2_two-supporting-facts",
    "qa3_three-supporting-facts",
    "qa4_two-arg-relations",
    "qa5_three-arg-relations",
    "qa6_yes-no-questions",
    "qa7_counting",
    "qa8_lists-sets",
    "qa9_simple-negation",
    "qa10_indefinite-knowledge",
    "qa11_basic-coreference",
    "qa12_conjunction",
    "qa13_compound-coreference",
    "qa14_time-reasoning",
    "qa15_basic-deduction",
    "qa16_basic-induction",
    "qa17_positional-reasoning",
    "qa18_size-reasoning",
    "qa19_path-finding",
    "qa20_agents-motivations",
)


OFFICIAL = Official(
    url="http://www.thespermwhale.com/jaseweston/babi/tasks_1-20_v1-2.tar.gz",
    file="tasks_1-20_v1-2.tar.gz",
    members=tuple(f"{stem}_{part}.txt" for stem in _STEMS for part in ("train", "test")),
)


def file_names(tasks):
    """Returns the names of the files of tasks, training file and test file of each."""
    return [f"{_STEMS[task - 1]}_{part}.txt" for task in tasks for part in ("train", "test")]


def shipped():
    """Returns the source that is part of this package: English, 1k."""
    return Source(importlib.resources.files("problems") / "data" / "babi" / "tasks_1-20_v1-2.en.tar.gz")


def find(manual_dir, size, tasks):
    """Returns the `Source` below `manual_dir` (a folder, or an archive itself) that holds most of the files of `tasks`.

    Raises:
        UserError: there is none, or the only archives are broken.
    """
    manual = pathlib.Path(manual_dir).expanduser()
    if not manual.exists():
        raise UserError(f"--manual_dir={manual} does not exist; {OFFICIAL.advice}")
    if manual.is_file():
        return Source(manual)
    names, folder = file_names(tasks), FOLDERS[size]
    for path in (manual / OFFICIAL.file.removesuffix(".tar.gz") / folder, manual / folder, manual):
        foreign = path.resolve().name in _OTHER_FOLDERS + tuple(f for f in FOLDERS.values() if f != folder)
        if not foreign and any((path / name).is_file() for name in names):
            return Source(path)
    broken, best = None, (0, None)
    for path in sorted(sources.archives(manual), key=lambda path: path.name != OFFICIAL.file):
        source = Source(path)
        try:
            count = len(present(source, size, names))
        except UserError as error:
            broken = broken or error
            continue
        if count == len(names):
            return source
        best = max(best, (count, source), key=lambda pair: pair[0])
    if best[1] is not None:
        return best[1]
    if broken:
        raise broken
    raise UserError(f"--manual_dir={manual} has no bAbI files of {folder}; {OFFICIAL.advice}")


def paths(source, size, tasks):
    """Returns the paths in `source` of the files of tasks."""
    return list(present(source, size, file_names(tasks)).values())


def present(source, size, names):
    """Returns {name: its path in `source`} of those of the files that it has: of a folder, in it and not below it."""
    paths = {name: name if source.path.is_dir() else f"{FOLDERS[size]}/{name}" for name in names}
    if source.path.is_dir():
        return {name: path for name, path in paths.items() if path in source.names()}
    return {name: path for name, path in paths.items() if source.has(path)}


def read(source, size, names):
    """Returns {name: bytes} of the named files of the release's folder for `size`.

    Raises:
        UserError: the archive is broken, or a file is not in it.
    """
    there = present(source, size, names)
    missing = [name for name in names if name not in there]
    if missing:
        raise UserError(f"{source.path} has no {FOLDERS[size]}/{missing[0]}; {OFFICIAL.advice}")
    return {name: source.read(path) for name, path in there.items()}


def read_splits(source, tasks, size, dev_percent, seed):
    """Returns {"train", "dev", "test": list of examples}.

    The dev split is `dev_percent` of the stories of each task's training file, drawn with `seed`: all
    questions of a story are on one side, and so are stories with equal statements. The test file is the test split.

    Returns:
        Examples {"task": int, "story": statements joined by LF, "question": str, "answer": str}.

    Raises:
        UserError: a file is missing or broken, or too small for three splits.
    """
    files = read(source, size, file_names(tasks))
    splits = {"train": [], "dev": [], "test": []}
    for task in tasks:
        train_name, test_name = file_names([task])
        stories = parse(files[train_name], train_name, task)
        held_out = _draw([statements for statements, _ in stories], dev_percent, np.random.default_rng([seed, task]))
        for statements, questions in stories:
            splits["dev" if statements in held_out else "train"] += questions
        for _, questions in parse(files[test_name], test_name, task):
            splits["test"] += questions
    for name, examples in splits.items():
        if not examples:
            raise UserError(f"{source.path}: its files leave no question for the {name} split")
    return splits


def parse(data, name, task):
    """Returns the stories of a file: list of (all statements, list of examples as of `read_splits`).

    Raises:
        UserError: a line is not of the format; the message names file and line.
    """
    stories, statements = [], []
    for number, line in enumerate(textio.read_lines(io.BytesIO(data), name), 1):
        index, _, text = line.partition(" ")
        fields = text.split("\t")
        if textio.natural(index) is None or not fields[0].strip() or len(fields) > 1 and not fields[1].strip():
            raise UserError(f"{name}: line {number} is neither a statement nor a question with answer: {line[:60]!r}")
        if int(index) == 1:
            statements, questions = [], []
            stories.append((statements, questions))
        if not stories:
            raise UserError(f"{name}: line {number}: the first story does not begin with line 1")
        if len(fields) == 1:
            statements.append(text.strip())
            continue
        questions.append(
            {"task": task, "story": "\n".join(statements), "question": fields[0].strip(), "answer": fields[1].strip()}
        )
    return [(tuple(statements), questions) for statements, questions in stories]


def _draw(stories, percent, rng):
    """Returns the set of distinct stories that make up `percent` of all, as nearly as their repetitions allow."""
    repetitions = collections.Counter(stories)
    distinct = sorted(repetitions)
    target, count, drawn = max(1, round(len(stories) * percent / 100)), 0, set()
    for index in rng.permutation(len(distinct)):
        story = distinct[index]
        if count + repetitions[story] <= target:
            drawn.add(story)
            count += repetitions[story]
    return drawn
