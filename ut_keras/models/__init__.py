"""The models, and their names in the registry. Importing this package imports no model."""

from ut_keras.backend import require_tensorflow
from ut_keras.registry import models

require_tensorflow()

for _name, _summary in {
    "universal_transformer": "encoder and decoder, a recurrent block each; a decoder alone without inputs",
    "universal_transformer_encoder": "an encoder with a class for the whole input",
    "universal_transformer_lm": "a decoder alone: a language model",
    "transformer": "baseline: encoder and decoder of different blocks (Attention Is All You Need)",
    "transformer_encoder": "baseline: an encoder of different blocks with a class for the whole input",
    "transformer_lm": "baseline: a decoder of different blocks",
    "lstm_seq2seq": "baseline: LSTM encoder and decoder",
    "lstm_seq2seq_attention": "baseline: LSTM encoder and decoder with attention",
}.items():
    models.register(_name, "ut_keras.models.build:build_model", summary=_summary)
