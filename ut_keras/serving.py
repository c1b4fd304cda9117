"""The model that is exported: text in, text out, all of it in one graph.

Shapes: B batch, L source length (sentences, where inputs are sentences of words; prompt and continuation of a
language model), N produced length.

A module that has the Keras model as an attribute loads in Python and fails in every C++ server
(tensorflow#72963, keras#20095), so `TextModel` holds the raw variables and keeps the Keras model in a closure.
"""

import tensorflow as tf

from ut_keras.decoding.answer import after_prompt, answer, continued, kind_of, text_ponder_times


class TextModel(tf.Module):
    """A trained model with its text encoder and decoder: a batch of lines in, a batch of lines out.

    The signature `serving_default` takes

        inputs: [B] string, one line per example; an empty line gets an empty answer. For a language model the
            prompts.

    and returns

        outputs: [B] string; a language model's continuations, without their prompts.
        scores: [B] float, natural logarithm of the probability of the answer.
        ponder_times: [B, L] float, steps that the encoder took at each input position (each sentence,
            where inputs are sentences); 0 at padding, 1 by models without recurrence. A language model has no
            encoder: here stand the steps that it took to predict each token of the prompt and then of the
            continuation, end token included.

    Args:
        model: a Keras model that is built, outside of any `tf.distribute` strategy.
        features: `ut_keras.hparams.Features` that the model was built for.
        text_encoder: callable and `tf.Module`, strings [B] -> ids [B, L] or [B, S, W] int32, padded with 0.
        text_decoder: callable and `tf.Module`, ids [B, N] int32 -> strings [B].
        max_output_length: callable, lengths [B] int32 (real input ids) -> [B] int32, most ids of an answer (prompt
            not counted).

    Example:

    >>> module = TextModel(model, features, problem.text_encoder(), ...)    # doctest: +SKIP
    >>> module.save("/srv/model/1")                                         # doctest: +SKIP
    """

    def __init__(self, model, features, text_encoder, text_decoder, max_output_length):
        super().__init__(name="text_model")
        # Keras wraps each tf.Variable; tracking the wrapper as well would save every variable twice.
        self.weights = [variable.value for variable in model.variables]
        self.text_encoder = text_encoder
        self.text_decoder = text_decoder
        kind = kind_of(features)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
        def serve(inputs):
            ids = text_encoder(inputs)
            lengths = tf.reduce_sum(tf.cast(ids != 0, tf.int32), axis=tf.range(1, tf.rank(ids)))
            limits = max_output_length(lengths)
            if kind == "continuation":
                whole, scores = continued(model, ids, limits)
                produced, times = after_prompt(whole, lengths), text_ponder_times(model, whole)
            else:
                produced, scores, sides = answer(model, ids, limits, kind)
                times = sides["encoder"]
            outputs = tf.ensure_shape(text_decoder(produced), [None])
            return {"outputs": outputs, "scores": scores, "ponder_times": times}

        self.serve = serve

    def save(self, directory):
        """Writes a SavedModel (`saved_model.pb` and its variables) into `directory`."""
        tf.saved_model.save(self, str(directory), signatures={"serving_default": self.serve})
