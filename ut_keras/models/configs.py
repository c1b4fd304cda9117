"""The hyperparameter sets under tensor2tensor's names, with tensor2tensor's values. Standard library only.

Our own sets are in cpu_configs.py.
"""

import dataclasses

from ut_keras.hparams import HParams
from ut_keras.registry import hparams_sets


def change(hparams, **changes):
    """Returns a copy of a set with some values changed."""
    return dataclasses.replace(hparams, **changes)


@hparams_sets.register("transformer_base")
def transformer_base():
    """T2T's transformer_base: 6 layers, 512/2048/8. No score measured here."""
    return HParams(model="transformer", use_target_space_embedding=True)


@hparams_sets.register("transformer_small")
def transformer_small():
    """T2T's transformer_small: 2 layers, 256/1024/4. No score measured here."""
    return change(transformer_base(), num_hidden_layers=2, hidden_size=256, filter_size=1024, num_heads=4)


@hparams_sets.register("transformer_tiny")
def transformer_tiny():
    """T2T's transformer_tiny: 2 layers, 128/512/4. No score measured here."""
    return change(transformer_base(), num_hidden_layers=2, hidden_size=128, filter_size=512, num_heads=4)


@hparams_sets.register("universal_transformer_small")
def universal_transformer_small():
    """T2T's universal_transformer_small: 6 steps, 512/2048/8. No score measured here."""
    return HParams(model="universal_transformer", use_target_space_embedding=True)


@hparams_sets.register("universal_transformer_base")
def universal_transformer_base():
    """T2T's universal_transformer_base: 6 steps, 1024/4096/16, dropout 0.3. No score measured here."""
    return change(
        universal_transformer_small(),
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        layer_prepostprocess_dropout=0.3,
    )


@hparams_sets.register("universal_transformer_big")
def universal_transformer_big():
    """T2T's universal_transformer_big: 6 steps, 2048/8192/16, dropout 0.3. No score measured here."""
    return change(universal_transformer_base(), hidden_size=2048, filter_size=8192)


@hparams_sets.register("universal_transformer_tiny")
def universal_transformer_tiny():
    """T2T's universal_transformer_tiny: 8 steps, 128/512/4. No score measured here."""
    return change(
        universal_transformer_small(),
        hidden_size=128,
        filter_size=512,
        num_heads=4,
        num_rec_steps=8,
        act_max_steps=4,
    )


@hparams_sets.register("adaptive_universal_transformer_small")
def adaptive_universal_transformer_small():
    """T2T's adaptive_universal_transformer_small: ACT up to 12 steps, 512/2048/8. No score measured here."""
    return change(universal_transformer_small(), recurrence_type="act")


@hparams_sets.register("adaptive_universal_transformer_base")
def adaptive_universal_transformer_base():
    """T2T's adaptive_universal_transformer_base: ACT up to 12 steps, 1024/4096/16. No score measured here."""
    return change(universal_transformer_base(), recurrence_type="act")


@hparams_sets.register("adaptive_universal_transformer_tiny")
def adaptive_universal_transformer_tiny():
    """T2T's adaptive_universal_transformer_tiny: ACT up to 4 steps, 128/512/4. No score measured here."""
    return change(universal_transformer_tiny(), recurrence_type="act")
