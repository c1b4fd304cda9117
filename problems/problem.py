"""The base class of all problems: what a trainer may ask of one.

Legend: L positions of the input, S sentences, W words of a sentence, N output ids.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np

from problems import packed, textio
from problems.vocabulary import EOS, Vocabulary, quoted
from ut_keras import registry
from ut_keras.errors import UsageError, UserError
from ut_keras.hparams import Features

TEXT_METRICS = ("approx_bleu_score", "rouge_2_fscore", "rouge_L_fscore")  # of tensor2tensor's text problems
_FILE = "problem.json"
_NOT_SAVED = "{} is not a problem that was saved by this program"
_MOST = 2**31 - 1
_KINDS = {bool: "true or false", int: f"an integer from 0 to {_MOST}", float: "a number from 0", str: "text"}
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Problem:
    """A task: its data, its vocabularies, and how its text becomes ids and back.

    A subclass sets the class attributes and gives `_pack`. Text becomes ids by the vocabularies, which are known from
    the start, or after `prepare` or `load`; a subclass whose inputs are not lines gives `encode_input` and its twin.

    Args:
        name: the registered name.
        **arguments: values (or their text) for names in `arguments`.

    Attributes:
        name: the registered name.
        args: {argument: value}, all of them.
        splits: names of the splits that there may be; "train" and "dev" among them, "test" for the final score.
        available: names of the splits that there are; None before `prepare`.
        target: "sequence" or "class".
        scored: "all" tokens count, or the "last" one before the end token (predicting a word): the evaluation then
            reports it apart, and whether it is preferred to the id in the split's extras["wrong"], where there is one.
        selection: how the best checkpoint is chosen on dev: by teacher-forced "accuracy", or by "loss" (negative
            log-likelihood).
        eval_metrics: names of tensor2tensor's teacher-forced metrics that are reported beside those of every problem,
            where targets are sequences: "approx_bleu_score", "rouge_2_fscore", "rouge_L_fscore", "edit_distance".
        default_hparams_set: the hparams set that fits the problem.
        description: one line.
        vocabularies: {"inputs": Vocabulary or None, "targets": Vocabulary}; None before `prepare`.
        fingerprint: digest of prepared data and vocabularies; None before `prepare` or `load`.
        data_dir: where the data are; None before `prepare`.

    Raises:
        UsageError: an argument is unknown or its value does not fit.
    """

    splits = ("train", "dev", "test")
    target = "sequence"
    scored = "all"
    selection = "accuracy"
    eval_metrics = ()
    default_hparams_set = None
    arguments = {}
    words_per_sentence = None

    def __init__(self, name, **arguments):
        self.name = name
        self.args = _parse_arguments(name, self.arguments, arguments)
        self.vocabularies = None
        self.fingerprint = None
        self.data_dir = None
        self._splits = None
        self._loaded = None
        self._data_name = None  # of the prepared data, where the settings alone do not say it

    @property
    def description(self):
        known = self.name in registry.problems
        return registry.problems.summary(self.name) if known else self.name

    def prepare(self, data_dir=None, manual_dir=None):
        """Makes the data if they are not there yet, opens them, and prints counts to standard error.

        Args:
            data_dir: where data are kept. None: the default of tensorflow-datasets.
            manual_dir: where files are that were downloaded by hand.

        Returns:
            The problem.

        Raises:
            UserError: a file is missing or broken, the directory cannot be written, or a problem
                from `load` finds other data than it was saved with.
        """
        from problems import builders

        root = builders.data_root(data_dir)
        splits, state = self._pack(root, manual_dir)
        self._restore(state)
        self._splits = splits
        self.data_dir = str(root)
        self.fingerprint = fingerprint(self.vocabularies, self._trained_on(splits))
        self._refuse_other_data()
        sizes = ", ".join(f"{name} {len(split):,}" for name, split in splits.items())
        log(f"{self.name}: examples: {sizes} (data in {root})")
        for name, split in splits.items():
            for what, count in split.counts.items():
                if count:
                    log(f"{self.name}: {name}: {what}: {count:,}")
        return self

    @property
    def features(self):
        """The part of the problem that shapes a model (`ut_keras.hparams.Features`)."""
        inputs, targets = self._known("inputs"), self._known("targets")
        return Features(
            target=self.target,
            target_vocabulary_size=targets.size,
            input_vocabulary_size=inputs.size if inputs is not None else None,
            words_per_sentence=self.words_per_sentence,
            same_vocabulary=inputs is None or inputs == targets,
        )

    def split(self, name):
        """Returns the `PackedSplit` called `name`.

        Raises:
            UsageError: the problem has no split of this name.
            UserError: it could have one, and the files for it are not there; or nothing is prepared yet.
        """
        if name not in self.splits:
            raise UsageError(f"{self.name} has no split {name!r}; it has {', '.join(self.splits)}")
        if self._splits is None:
            raise UserError(f"{self.name}: its data are not prepared yet")
        if name not in self._splits:
            raise UserError(f"{self.name}: there is no split {name!r}: {self._absent(name)}")
        return self._splits[name]

    @property
    def available(self):
        return None if self._splits is None else tuple(name for name in self.splits if name in self._splits)

    @property
    def final_split(self):
        """The split of the final score: "test", or "dev" where there is no test split."""
        return "test" if self._splits is None or "test" in self._splits else "dev"

    def groups(self, split):
        """Returns {name: [N] bool} of the parts of a `PackedSplit` that are scored for themselves as well."""
        return {}

    @property
    def free_form(self):
        """Whether an answer may be right that is another than the target: where text is scored, as a translation is."""
        return type(self).text_scores is not Problem.text_scores

    def text_scores(self, outputs, references):
        """Returns {metric: number or text} of decoded texts against the right ones, two lists of str (BLEU, ...)."""
        return {}

    def exact_length_split(self, length, count, seed=0):
        """Returns a `PackedSplit` of inputs of exactly `length` symbols; UsageError if the problem has none."""
        raise UsageError(f"{self.name} has no inputs of a chosen length; lengths belong to the algorithmic problems")

    def encode_input(self, text):
        """Returns the ids of a line of text: [L] int32 with the end token, or [S, W]; no positions for an empty line.

        Raises:
            UserError: the line cannot be encoded; the message names the problem and the token.

        A problem without inputs takes the beginning of a target: its ids without an end token.
        """
        ids = self._text_vocabulary.encode(text, self.name)
        return np.array(with_end(ids) if ids and self._known("inputs") else ids, np.int32)

    def encode_target(self, text):
        """Returns the ids of an output, raising as `encode_input`: [N] int32 with the end token; of a class [1]."""
        targets = self._known("targets")
        if self.target == "class":
            if text not in targets:
                raise UserError(f"{self.name} has no class {quoted(text)}{registry.near_names(text, targets.entries)}")
            return np.array([targets.id_of(text)], np.int32)
        return np.array(with_end(targets.encode(text, self.name)), np.int32)

    def cut(self, text):
        """Returns what `encode_input` leaves out of a line of text, in words; "" where it is nothing."""
        return ""

    def decode_input(self, ids):
        """Returns the text of input ids (of the beginning of a target, where there are no inputs)."""
        return self._text_vocabulary.decode(ids)

    def decode_target(self, ids):
        """Returns the text of output ids: [N] up to the first end token, or one class id; reserved ids have none."""
        targets = self._known("targets")
        if self.target == "class":
            return "".join(targets.decode_tokens(ids if hasattr(ids, "__len__") else [ids])[:1])
        return targets.decode(ids)

    def text_encoder(self):
        """Returns a tf.Module: [B] string -> [B, L] or [B, S, W] int32, the twin of `encode_input`."""
        from problems import text_graph

        if self.words_per_sentence is not None:
            raise UsageError(f"{self.name}: its inputs are sentences of words; the problem needs its own text_encoder")
        return text_graph.encoder(self._text_vocabulary, end=self._known("inputs") is not None)

    def text_decoder(self):
        """Returns a tf.Module: [B, N] ids (class: [B] or [B, 1]) -> [B] string."""
        from problems import text_graph

        if self.target == "class":
            return text_graph.ClassDecoder(self._known("targets"))
        return text_graph.decoder(self._known("targets"))

    def max_output_length(self, input_length):
        """Returns the most output ids, end token included, for `input_length` positions (an int or a tensor)."""
        return input_length if self.target == "sequence" else 1

    def save(self, run_dir):
        """Writes problem.json, all that `load` needs, into the directory `run_dir`."""
        values = {
            "name": self.name,
            "args": self.args,
            "fingerprint": self.fingerprint,
            "state": self._state(),
        }
        textio.write_text(pathlib.Path(run_dir) / _FILE, json.dumps(values, indent=1) + "\n")

    @staticmethod
    def load(run_dir):
        """Returns the problem that `save` wrote: it encodes and decodes at once, and has splits after `prepare`.

        Raises:
            UserError: the file is missing or is not such a file.
        """
        path = pathlib.Path(run_dir) / _FILE
        text = "\n".join(textio.read_lines(path))
        try:
            values = json.loads(text)
            name, args, state, saved = (values[key] for key in ("name", "args", "state", "fingerprint"))
        except (ValueError, KeyError, TypeError):
            raise UserError(_NOT_SAVED.format(path)) from None
        problem = registry.problems.get(name)(name=name, **args)
        try:
            problem._restore(state)
        except UserError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(_NOT_SAVED.format(path)) from None
        problem.fingerprint = saved
        problem._loaded = (saved, problem.vocabularies)
        return problem

    def saved_vocabulary(self, feature):
        """Returns the vocabulary of "inputs" or "targets" that `load` brought; None if the problem was not loaded."""
        return self._loaded[1][feature] if self._loaded else None

    def _pack(self, root, manual_dir):
        """Returns ({split: PackedSplit}, state for `_restore`); makes them below the path `root` if need be."""
        raise UsageError(f"{self.name} has no data")

    def _trained_on(self, splits):
        """Returns those of {name: PackedSplit} that a run is bound to: it refuses to go on where they have changed."""
        return splits

    def _absent(self, split):
        """Returns why there is no such split, and what to do about it."""
        return "its files were not found"

    def _open_or_pack(self, root, settings, make):
        return packed.open_or_pack(root / "packed", self.name, settings, make)

    def _state(self):
        return {
            "vocabularies": {
                key: None if value is None else value.to_dict() for key, value in (self.vocabularies or {}).items()
            },
            "words_per_sentence": self.words_per_sentence,
            "data_name": self._data_name,
        }

    def _restore(self, state):
        self.vocabularies = {
            key: None if value is None else Vocabulary.from_dict(value) for key, value in state["vocabularies"].items()
        }
        self.words_per_sentence = state["words_per_sentence"]
        self._data_name = state.get("data_name", self._data_name)

    @property
    def _text_vocabulary(self):
        """The vocabulary of the text that a model is given: of its inputs, or of the beginning of a target."""
        return self._known("inputs") or self._known("targets")

    def _known(self, feature):
        if self.vocabularies is None:
            raise UserError(f"{self.name}: its vocabulary is not known before its data are prepared")
        return self.vocabularies[feature]

    def _refuse_other_data(self):
        if self._loaded is None:
            return
        self._refuse_other_vocabulary()
        if self._loaded[0] not in (self.fingerprint, None):  # a run that was imported has seen no data yet
            raise UserError(
                f"{self.name}: the data in {self.data_dir} are not those of the run: their fingerprint is "
                f"{self.fingerprint[:12]} and the run's {self._loaded[0][:12]}; give it its own data, or choose "
                "another --output_dir"
            )

    def _refuse_other_vocabulary(self):
        for key, vocabulary in self._loaded[1].items():
            if vocabulary != self.vocabularies[key]:
                raise UserError(
                    f"{self.name}: the vocabulary of its {key} in {self.data_dir} has {self.vocabularies[key].size} "
                    f"ids and is another than the one of the run, with {vocabulary.size} ids"
                )


def with_end(ids):
    """Returns ids [L] with the end token after them."""
    return [*ids, EOS]


def fingerprint(vocabularies, splits):
    """Returns the digest of vocabularies {"inputs", "targets"} and of the content of {name: PackedSplit}."""
    digest = hashlib.sha256()
    for key in sorted(vocabularies):
        digest.update(repr((key, vocabularies[key] and vocabularies[key].to_dict())).encode())
    for name in sorted(splits):
        digest.update(f"{name}={splits[name].fingerprint}".encode())
    return digest.hexdigest()


def _parse_arguments(name, defaults, given):
    values = dict(defaults)
    for key, value in given.items():
        if key not in defaults:
            has = f"it has {', '.join(sorted(defaults))}" if defaults else "it has none"
            raise UsageError(f"{name} has no argument {key!r}{registry.near_names(key, defaults)}; {has}")
        values[key] = _typed(name, key, value, defaults[key])
    return values


def _typed(name, key, value, default):
    kind = str if default is None else type(default)
    try:
        if isinstance(value, str) and kind is not str:
            value = _TRUTH[value.lower()] if kind is bool else kind(value)
        if kind is float and type(value) is int:
            value = float(value)
    except (ValueError, KeyError):
        pass
    fits = type(value) is kind or value is default
    if not fits or kind in (int, float) and not value >= 0 or kind is int and value > _MOST:
        raise UsageError(f"{name}: argument {key}={value!r} is not {_KINDS[kind]}")
    return value


def log(text):
    """Says something about the data, on standard error."""
    print(text, file=sys.stderr, flush=True)
