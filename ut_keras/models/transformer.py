"""The plain Transformer as a baseline: the same models with a stack of different blocks as body."""

import keras

from ut_keras.layers.stack import BlockStack
from ut_keras.models.encoder import UniversalTransformerEncoder
from ut_keras.models.language_model import UniversalTransformerLM
from ut_keras.models.universal_transformer import UniversalTransformer


@keras.saving.register_keras_serializable("ut_keras")
class Transformer(UniversalTransformer):
    """Encoder and decoder of `max_steps` different blocks each (Vaswani et al. 2017).

    Args:
        See `UniversalTransformer`; `**body` are arguments of `BlockStack`. There is no halting, and the call's
        `max_steps` and `return_ponder` have nothing to give ({} comes back).

    Example:

    >>> model = Transformer(20, hidden_size=8, num_heads=2, filter_size=16, max_steps=2)
    >>> model({"inputs": keras.ops.array([[5, 6, 1]]), "targets": keras.ops.array([[6, 1]])}).shape.as_list()
    [1, 2, 20]

    Source: T2T models/transformer.py.
    """

    make_body = BlockStack


@keras.saving.register_keras_serializable("ut_keras")
class TransformerEncoder(UniversalTransformerEncoder):
    """An encoder of `max_steps` different blocks; see `UniversalTransformerEncoder` and `BlockStack`.

    Example:

    >>> encoder = TransformerEncoder(20, hidden_size=8, num_heads=2, filter_size=16, max_steps=2)
    >>> encoder(keras.ops.array([[5, 6, 1]])).shape.as_list()
    [1, 3, 8]

    Source: T2T models/transformer.py (TransformerEncoder).
    """

    make_body = BlockStack


@keras.saving.register_keras_serializable("ut_keras")
class TransformerLM(UniversalTransformerLM):
    """A decoder-only Transformer of `max_steps` different blocks; see `UniversalTransformerLM` and `BlockStack`.

    Example:

    >>> model = TransformerLM(20, hidden_size=8, num_heads=2, filter_size=16, max_steps=2)
    >>> model(keras.ops.array([[5, 6, 1]])).shape.as_list()
    [1, 3, 20]

    Source: T2T models/transformer.py (a problem without inputs).
    """

    make_body = BlockStack
