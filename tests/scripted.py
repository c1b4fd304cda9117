"""A model whose answers are known, and two small problems for it: for tests of what stands around a model."""

import keras
import numpy as np
import tensorflow as tf

from problems.closed_vocabularies import NumberVocabulary
from problems.packed import Packed, PackedSplit
from problems.problem import Problem
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.search import decoder_of, search
from ut_keras.errors import UserError
from ut_keras.hparams import Features
from ut_keras.layers.halting import Ponder

_SYMBOLS = "0123456789"
_VOCABULARY = 12  # padding, end, ten digits


class Copier(keras.Model):
    """Answers with its inputs, one id after the other; as a classifier with the first id of the last filled row.

    Its ponder time at a position is the id there (of a sentence: its first id). `encoded` counts the encoder's runs.
    """

    def __init__(self, vocabulary=_VOCABULARY):
        super().__init__()
        self.vocabulary = vocabulary
        self.strength = self.add_weight(shape=(), initializer="ones", name="strength")
        self.encoded = self.add_weight(shape=(), initializer="zeros", name="encoded", trainable=False)
        self.built = True

    def encode(self, x, max_steps=None):
        self.encoded.assign_add(1.0)
        ids = x["inputs"]
        return {"ids": ids, "ponder_times": tf.cast(ids[:, :, 0] if len(ids.shape) == 3 else ids, tf.float32)}

    def decode(self, targets, memory, max_steps=None, last=False):
        length = tf.shape(targets)[1]
        padded = tf.pad(memory["ids"], [[0, 0], [0, length]])[:, :length]
        return self.strength * tf.one_hot(padded, self.vocabulary)

    def classify(self, memory):
        first = memory["ids"][:, :, 0]
        last = tf.reduce_sum(tf.cast(first != 0, tf.int32), axis=1) - 1
        answer = tf.gather(first, tf.maximum(last, 0), batch_dims=1)
        return self.strength * tf.one_hot(answer, self.vocabulary)

    def call(self, x, training=False, return_ponder=False, max_steps=None):
        memory = self.encode(x)
        if len(x["inputs"].shape) == 3:
            logits, ponder = self.classify(memory), {"encoder": _ponder(x["inputs"][:, :, 0])}
        else:
            logits = self.decode(x["targets"], memory)
            ponder = {"encoder": _ponder(x["inputs"]), "decoder": _ponder(x["targets"])}
        return (logits, ponder) if return_ponder else logits


def _ponder(ids):
    times = tf.cast(ids, tf.float32)
    return Ponder(times, times, times[tf.newaxis], tf.cast(ids != 0, tf.float32))


def packed(name, examples):
    """Returns examples, {"inputs", "targets"} of int arrays, as a PackedSplit."""

    def feature(key):
        return Packed.from_tokens(np.concatenate([e[key] for e in examples]), [len(e[key]) for e in examples])

    return PackedSplit(name, feature("inputs"), feature("targets"))


class CopyDigits(Problem):
    """Digits in, the same digits out; `split("test")` has four examples, the last of which `Copier` gets wrong."""

    features = Features("sequence", _VOCABULARY, _VOCABULARY)

    def __init__(self, name="copy_digits"):
        super().__init__(name)
        self.vocabularies = {side: NumberVocabulary(len(_SYMBOLS)) for side in ("inputs", "targets")}

    def encode_input(self, text):
        for token in text.split():
            if token not in _SYMBOLS:
                raise UserError(f"{self.name}: {token!r} is not one of 0 to 9")
        ids = [_SYMBOLS.index(token) + 2 for token in text.split()]
        return np.array([*ids, 1] if ids else [], np.int32)

    def encode_target(self, text):
        return np.append(self.encode_input(text)[:-1], [1]).astype(np.int32)

    def decode_input(self, ids):
        return NumberVocabulary(len(_SYMBOLS)).decode(ids)

    def decode_target(self, ids):
        return NumberVocabulary(len(_SYMBOLS)).decode(ids)

    def max_output_length(self, length):
        return length + 2

    def text_encoder(self):
        return _Encode()

    def text_decoder(self):
        return _Decode()

    def split(self, name):
        lines = ["3 1 4", "1", "5 9 2 6 5 3", "5 8"]
        examples = [{"inputs": self.encode_input(line), "targets": self.encode_input(line)} for line in lines]
        examples[-1]["targets"] = self.encode_input("5 7")
        return packed(name, examples)

    def exact_length_split(self, length, count, seed):
        ids = self.encode_input(" ".join("3" * length))
        return packed(f"length_{length}", [{"inputs": ids, "targets": ids}] * count)


class Grouped(CopyDigits):
    """As CopyDigits, with groups and a score of decoded text."""

    def groups(self, split):
        lengths = split.lengths[:, 1]
        return {"short": lengths <= 3, "long": lengths > 3, "none": lengths > 99}

    def text_scores(self, outputs, references):
        return {"pairs": 1.0 * len(outputs), "last": float(outputs[-1] == references[-1]), "signature": "a:b"}


class LastSentence(CopyDigits):
    """Sentences of digits, separated by full stops, in; the first digit of the last one out."""

    target = "class"
    features = Features("class", _VOCABULARY, _VOCABULARY, words_per_sentence=3)

    def __init__(self):
        super().__init__("last_sentence")

    def encode_input(self, text):
        rows = [super(LastSentence, self).encode_input(part)[:-1] for part in text.split(".") if part.strip()]
        return np.array([np.pad(row, [0, 3 - len(row)]) for row in rows], np.int32).reshape([-1, 3])

    def encode_target(self, text):
        if text not in list(_SYMBOLS):
            raise UserError(f"{self.name} has no class {text!r}")
        return np.array([_SYMBOLS.index(text) + 2], np.int32)

    def decode_input(self, ids):
        return ". ".join(NumberVocabulary(len(_SYMBOLS)).decode(row) for row in ids)

    def split(self, name):
        lines = [("3 1 4. 1 5 9", "1"), ("2. 6. 5 3", "5"), ("8", "9")]
        return packed(name, [{"inputs": self.encode_input(a), "targets": np.array([int(b) + 2])} for a, b in lines])

    def text_encoder(self):
        return _EncodeSentences()


class _Encode(tf.Module):
    def __init__(self):
        super().__init__()
        keys = tf.constant(list(_SYMBOLS))
        values = tf.range(2, 12)
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), 0)

    def __call__(self, texts):
        words = tf.strings.split(texts)
        ids = tf.ragged.map_flat_values(self.table.lookup, words)
        end = tf.ones([tf.shape(texts)[0], 1], tf.int32)
        ends = tf.RaggedTensor.from_tensor(end)
        ends = tf.ragged.boolean_mask(ends, (words.row_lengths() > 0)[:, tf.newaxis])
        return tf.concat([ids, ends], axis=1).to_tensor()


class _Decode(tf.Module):
    def __init__(self):
        super().__init__()
        self.symbols = tf.constant(["", "", *_SYMBOLS])

    def __call__(self, ids):
        real = tf.ragged.boolean_mask(ids, ids > 1)
        return tf.strings.reduce_join(tf.gather(self.symbols, real), axis=-1, separator=" ")


class _EncodeSentences(_Encode):
    def __call__(self, texts):
        sentences = tf.strings.split(texts, ".")
        words = tf.strings.split(tf.strings.strip(sentences.values))
        rows = tf.ragged.map_flat_values(self.table.lookup, words).to_tensor(shape=[None, 3])
        filled = tf.reduce_any(rows != 0, axis=1)
        lines = tf.boolean_mask(sentences.value_rowids(), filled)
        count = tf.shape(texts, tf.int64)[0]
        return tf.RaggedTensor.from_value_rowids(tf.boolean_mask(rows, filled), lines, count).to_tensor()


def compile_search(model, features=("inputs",), options=DecodingOptions()):  # noqa: B008 (it is frozen)
    """The search of one model as a compiled function of (x, limits), traced once for all shapes.

    x holds "inputs", or "targets" (prefixes), or both; limits count prefix and end token. Returns `Hypotheses`.
    """
    x = {name: tf.TensorSpec([None, None], tf.int32) for name in features}

    @tf.function(autograph=False, input_signature=[x, tf.TensorSpec([None], tf.int32)])
    def run(x, limits):
        prefix = x["targets"] if "targets" in x else tf.zeros([tf.shape(limits)[0], 0], tf.int32)
        lengths = tf.reduce_sum(tf.cast(prefix != 0, tf.int32), axis=1)
        decoder = decoder_of(model, model.encode(x, max_steps=options.max_steps), options)
        return search(decoder, prefix, lengths, limits, options)

    return run
