"""The model that is exported: text in, text out, all of it in one graph.

Shapes: B batch, L source length (sentences, where inputs are sentences of words; prompt and continuation of a
language model), P prompt length, N produced length, n `options.n_best`.

A module that has the Keras model as an attribute loads in Python and fails in every C++ server
(tensorflow#72963, keras#20095), so `TextModel` holds the raw variables and keeps the Keras model in a closure.
"""

import tensorflow as tf

from ut_keras.decoding.answer import answer, kind_of
from ut_keras.decoding.options import DecodingOptions

SIGNATURE = "serving_default"
_NO_HYPOTHESIS = tf.float32.min  # JSON has no infinity: one would make a whole answer unreadable to strict clients
_KEYS = 2**31 - 1


class TextModel(tf.Module):
    """A trained model with its text encoder and decoder: a batch of lines in, a batch of lines out.

    The signature `serving_default` takes

        inputs: [B] string, one line per example; an empty line gets an empty answer, and so does a line that cannot
            be encoded. For a language model the prompts.

    and returns

        outputs: [B] string, the best answers; a language model's continuations, without their prompts.
        scores: [B] float, natural logarithm of the probability of the answer.
        ponder_times: [B, L] float, steps that the encoder took at each input position (each sentence,
            where inputs are sentences); 0 at padding, 1 by models without recurrence. A language model has no
            encoder: here stand the steps that it took to predict each token of the prompt and then of the
            continuation, end token included.

    and, where `options.n_best` is above 1,

        n_best_outputs: [B, n] string, the best first.
        n_best_scores: [B, n] float, natural logarithm of the probability of each. Where there are fewer answers
            (always so for an empty line) the text is empty and the score -3.4e38, the lowest float32.

    A row's answer depends on its line alone and not on the rows beside it, so a server may put the requests of several
    clients into one batch (`options.coupled_stop` gives that up). Sampling is decided by the seed and the text of
    the line: the same line gets the same samples.

    Args:
        model: a Keras model that is built, outside of any `tf.distribute` strategy.
        features: `ut_keras.hparams.Features` that the model was built for.
        text_encoder: callable and `tf.Module`, strings [B] -> ids [B, L] or [B, S, W] int32, padded with 0.
        text_decoder: callable and `tf.Module`, ids [B, N] int32 -> strings [B].
        output_limit: callable, lengths [B] int32 (real input ids) -> int or [B] int32, most ids of an answer (prompt
            not counted).
        options: `DecodingOptions`, fixed in the graph.

    Attributes:
        serve: the function of the signature, traced: a tensor of lines -> {name: tensor}.
        signature: its names, types and shapes.

    Raises:
        UsageError: the options do not fit the kind of answer.

    Example:

    >>> module = TextModel(model, features, problem.text_encoder(), ...)    # doctest: +SKIP
    >>> module.save("/srv/model/1")                                         # doctest: +SKIP
    """

    def __init__(self, model, features, text_encoder, text_decoder, output_limit, options=None):
        super().__init__(name="text_model")
        options = options or DecodingOptions()
        kind = kind_of(features)
        options.check(kind)
        # Keras wraps each tf.Variable; tracking the wrapper as well would save every variable twice.
        self.weights = [variable.value for variable in model.variables]
        self.text_encoder = text_encoder
        self.text_decoder = text_decoder

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
        def serve(inputs):
            ids = text_encoder(inputs)
            lengths = tf.reduce_sum(tf.cast(ids != 0, tf.int32), axis=tf.range(1, tf.rank(ids)))
            limits = tf.broadcast_to(tf.cast(output_limit(lengths), tf.int32), tf.shape(lengths))
            keys = tf.cast(tf.strings.to_hash_bucket_fast(inputs, _KEYS), tf.int32)
            found = answer(model, ids, limits, kind, options, keys)
            texts = _texts(text_decoder, found.ids)
            times = _along_text(found, lengths) if kind == "continuation" else found.ponder_times["encoder"]
            served = {"outputs": texts[:, 0], "scores": found.log_probability[:, 0], "ponder_times": times}
            if options.n_best > 1:
                served["n_best_outputs"] = texts
                served["n_best_scores"] = tf.maximum(found.log_probability, _NO_HYPOTHESIS)
            return served

        # Saving traces a function of Python once more and keeps both graphs: twice the file, twice the time to load.
        self.serve = serve.get_concrete_function()

    @property
    def signature(self):
        """{"inputs" and "outputs": {name: {"dtype": name, "shape": sizes, None for any}}}."""
        (inputs,), _ = self.serve.structured_input_signature
        return {
            side: {name: {"dtype": spec.dtype.name, "shape": spec.shape.as_list()} for name, spec in specs.items()}
            for side, specs in (("inputs", {"inputs": inputs}), ("outputs", self.serve.structured_outputs))
        }

    def save(self, directory):
        """Writes a SavedModel (`saved_model.pb` and its variables) into `directory`."""
        tf.saved_model.save(self, str(directory), signatures={SIGNATURE: self.serve})


def _texts(text_decoder, ids):
    """Returns the texts of ids [B, n, N]: [B, n] string."""
    shape = tf.shape(ids)
    flat = text_decoder(tf.reshape(ids, [shape[0] * shape[1], shape[2]]))
    return tf.ensure_shape(tf.reshape(flat, shape[:2]), [None, ids.shape[1]])


def _along_text(found, lengths):
    """Returns the ponder times of a prompt and, right behind it, of its best continuation: [B, L] float.

    Args:
        found: `Answer` with ponder_times {"prompt": [B, P], "decoder": [B, n, N]}.
        lengths: [B] int32, real ids of each prompt.
    """
    prompt, continuation = found.ponder_times["prompt"], found.ponder_times["decoder"][:, 0]
    produced = tf.math.count_nonzero(found.ids[:, 0], axis=1, dtype=tf.int32)
    both = tf.concat([prompt, continuation, tf.zeros_like(prompt[:, :1])], axis=1)
    end = tf.shape(both)[1] - 1  # where 0 stands
    places = tf.range(tf.reduce_max(tf.concat([lengths + produced, [1]], axis=0)))[tf.newaxis]
    length = lengths[:, tf.newaxis]
    behind = tf.shape(prompt)[1] + places - length
    places = tf.where(places < length, places, tf.where(places < length + produced[:, tf.newaxis], behind, end))
    return tf.gather(both, places, batch_dims=1)
