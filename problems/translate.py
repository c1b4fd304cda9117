"""Translation between English and German: Multi30k, and tensor2tensor's WMT problem."""

from problems import own_files
from problems.problem import fingerprint
from problems.sources import Official
from problems.text_pairs import TextPairs
from problems.text_problem import TextProblem
from ut_keras.errors import UserError

_COLUMNS = {"en": str, "de": str}
_LANGUAGES = ("en", "de")


def _both(*names):
    return tuple(f"{name}.{language}" for name in names for language in _LANGUAGES)


_FILES = {"train": "train", "dev": "val", "test": "test_2016_flickr"}
MULTI30K = Official(
    url="https://github.com/multi30k/dataset/archive/refs/heads/master.zip",
    file="dataset-master.zip",
    members=_both(*_FILES.values()),
)

# What tensor2tensor trains on; an archive each. The development set is newstest2013.
_WMT_TRAIN = ("news-commentary-v13.de-en", "commoncrawl.de-en", "europarl-v7.de-en")
_WMT_OTHER = {"dev": "newstest2013", "test": "newstest2014"}
WMT = Official(
    url="http://data.statmt.org/wmt18/translation-task/training-parallel-nc-v13.tgz",
    file="the unpacked archives of WMT (training-parallel-nc-v13.tgz, ...)",
    members=_both(*_WMT_TRAIN, *_WMT_OTHER.values()),
)
_CATALOGUE = "wmt_t2t_translate/de-en"


class Translate(TextPairs):
    """Pairs of sentences in English and German.

    Args:
        languages: ("en", "de"), or the other way round.
    """

    official = None

    def __init__(self, name, languages, **arguments):
        super().__init__(name, **arguments)
        self.stored_columns = dict(zip(self.columns, languages, strict=True))

    def _read(self, source):
        """Returns {split: list of rows} of the files of `official`."""
        raise UserError(f"{self.name} has no files")

    def _from_files(self, root, manual_dir, name):
        from problems import builders

        builder = builders.prepare_official(
            root, name, _COLUMNS, self._read, self.official, manual_dir, self._data_name
        )
        self._data_name = builder.builder_config.name
        return builder

    def _refuse_other_data(self):
        """A run that was trained without the test files takes them when they come; its training data stay the same."""
        if self._loaded and self._loaded[0] == fingerprint(self.vocabularies, own_files.trained_on(self._splits)):
            self.fingerprint = self._loaded[0]
        super()._refuse_other_data()


class TranslateMulti30k(Translate):
    """Image captions of Multi30k (task 1, raw text): 29,000 pairs to train on, 1,014 to validate, and the test of 2016.

    Args:
        languages: ("en", "de"), or the other way round.
        vocabulary, vocabulary_size, vocabulary_file: as of `TextProblem` (problem arguments).

    Source: Elliott et al. 2016, Multi30K: Multilingual English-German image descriptions.
    """

    default_hparams_set = "universal_transformer_multi30k"
    arguments = {**TextProblem.arguments, "vocabulary_size": 4000}
    official = MULTI30K

    def _builder(self, root, manual_dir):
        return self._from_files(root, manual_dir, "multi30k")

    def _read(self, source):
        needed = {split: name for split, name in _FILES.items() if split != "test" or _any(source, name)}
        return {split: _pairs(source, name) for split, name in needed.items()}

    def _absent(self, split):
        return f"{_FILES[split]}.en and {_FILES[split]}.de were not found; {MULTI30K.advice}"


class TranslateWmt(Translate):
    """The news translation of WMT, as in tensor2tensor: News Commentary, Common Crawl, Europarl; 2**15 subwords.

    The data are tensorflow-datasets' wmt_t2t_translate: development set newstest2013, test set newstest2014. Or, with
    --manual_dir, the unpacked official files: those of the training corpora that are there, newstest2013.en and .de,
    and newstest2014.en and .de where present.

    Args:
        languages: ("en", "de"), or the other way round.
        vocabulary, vocabulary_size, vocabulary_file: as of `TextProblem` (problem arguments).
    """

    default_hparams_set = "universal_transformer_base"
    arguments = {**TextProblem.arguments, "vocabulary_size": 2**15}
    official = WMT

    def _builder(self, root, manual_dir):
        from problems import builders

        self.stored_splits = {}
        if manual_dir is not None or self._data_name in builders.prepared_config_names(builders.UtText, root):
            return self._from_files(root, manual_dir, "wmt_ende")
        self.stored_splits = {"dev": "validation"}
        return builders.prepare_catalogued(_CATALOGUE, root, WMT)

    def _read(self, source):
        present = [name for name in _WMT_TRAIN if _any(source, name)]
        if not present:
            raise UserError(f"{source.path} has none of {', '.join(_both(*_WMT_TRAIN))}; {WMT.advice}")
        rows = {"train": [row for name in present for row in _pairs(source, name)]}
        for split, name in _WMT_OTHER.items():
            if split == "dev" or _any(source, name):
                rows[split] = _pairs(source, name)
        return rows

    def _absent(self, split):
        name = _WMT_OTHER.get(split, _WMT_TRAIN[0])
        return f"{name}.en and {name}.de were not found; {WMT.advice}"


def _any(source, name):
    """Returns whether one of the two files is there; where it is one alone, that is an error of `_pairs`."""
    return any(source.has(file) for file in _both(name))


def _pairs(source, name):
    """Returns the rows of two files that belong together line by line."""
    columns = {f"{source.path}: {file}": source.lines(file) for file in _both(name)}
    return [dict(zip(_LANGUAGES, pair, strict=True)) for pair in own_files.together(columns)]
