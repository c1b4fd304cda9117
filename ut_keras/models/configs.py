"""The named hyperparameter sets. Standard library only.

Sets under tensor2tensor's names hold tensor2tensor's values; the others say what they are for.
"""

import dataclasses

from ut_keras.hparams import HParams
from ut_keras.registry import hparams_sets


def _change(hparams, **changes):
    return dataclasses.replace(hparams, **changes)


@hparams_sets.register("transformer_base")
def transformer_base():
    """T2T's transformer_base: 6 layers, 512/2048/8. No score measured here."""
    return HParams(model="transformer", use_target_space_embedding=True)


@hparams_sets.register("transformer_small")
def transformer_small():
    """T2T's transformer_small: 2 layers, 256/1024/4. No score measured here."""
    return _change(transformer_base(), num_hidden_layers=2, hidden_size=256, filter_size=1024, num_heads=4)


@hparams_sets.register("transformer_tiny")
def transformer_tiny():
    """T2T's transformer_tiny: 2 layers, 128/512/4. No score measured here."""
    return _change(transformer_base(), num_hidden_layers=2, hidden_size=128, filter_size=512, num_heads=4)


@hparams_sets.register("universal_transformer_small")
def universal_transformer_small():
    """T2T's universal_transformer_small: 6 steps, 512/2048/8. No score measured here."""
    return HParams(model="universal_transformer", use_target_space_embedding=True)


@hparams_sets.register("universal_transformer_base")
def universal_transformer_base():
    """T2T's universal_transformer_base: 6 steps, 1024/4096/16, dropout 0.3. No score measured here."""
    return _change(
        universal_transformer_small(),
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        layer_prepostprocess_dropout=0.3,
    )


@hparams_sets.register("universal_transformer_big")
def universal_transformer_big():
    """T2T's universal_transformer_big: 6 steps, 2048/8192/16, dropout 0.3. No score measured here."""
    return _change(universal_transformer_base(), hidden_size=2048, filter_size=8192)


@hparams_sets.register("universal_transformer_tiny")
def universal_transformer_tiny():
    """T2T's universal_transformer_tiny: 8 steps, 128/512/4. No score measured here."""
    return _change(
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
    return _change(universal_transformer_small(), recurrence_type="act")


@hparams_sets.register("adaptive_universal_transformer_base")
def adaptive_universal_transformer_base():
    """T2T's adaptive_universal_transformer_base: ACT up to 12 steps, 1024/4096/16. No score measured here."""
    return _change(universal_transformer_base(), recurrence_type="act")


@hparams_sets.register("adaptive_universal_transformer_tiny")
def adaptive_universal_transformer_tiny():
    """T2T's adaptive_universal_transformer_tiny: ACT up to 4 steps, 128/512/4. No score measured here."""
    return _change(universal_transformer_tiny(), recurrence_type="act")


def _cpu_recipe(hparams):
    """A recipe for minutes on two cores: Adam at 1e-3 between warm-up and a linear end, batches of examples."""
    return _change(
        hparams,
        use_target_space_embedding=False,
        learning_rate_constant=1e-3,
        learning_rate_schedule="constant*linear_warmup*linear_decay",
        learning_rate_warmup_steps=200,
        learning_rate_decay_steps=1000,
        optimizer_adam_beta2=0.98,
        clip_grad_norm=1.0,
        label_smoothing=0.0,
        attention_dropout=0.0,
        relu_dropout=0.0,
        use_fixed_batch_size=True,
        batch_size=64,
    )


@hparams_sets.register("universal_transformer_babi")
def universal_transformer_babi():
    """bAbI on two cores: encoder, 8 fixed steps, 64/256/4, facts numbered back from the question."""
    return _change(
        _cpu_recipe(universal_transformer_tiny()),
        model="universal_transformer_encoder",
        hidden_size=64,
        filter_size=256,
        input_position_numbering="end",
        learning_rate_decay_steps=2000,
        train_steps=4000,
        eval_every=1000,
    )


@hparams_sets.register("adaptive_universal_transformer_babi")
def adaptive_universal_transformer_babi():
    """bAbI on two cores with ACT: as universal_transformer_babi, halting after at most 8 steps."""
    return _change(universal_transformer_babi(), recurrence_type="act", act_type="accumulated", act_max_steps=8)


@hparams_sets.register("universal_transformer_algorithmic")
def universal_transformer_algorithmic():
    """Copy and addition on two cores: 4 fixed steps, 64/256/4, random position offsets (the paper's, for lengths)."""
    return _change(
        _cpu_recipe(universal_transformer_tiny()),
        hidden_size=64,
        filter_size=256,
        num_rec_steps=4,
        position_start_index="random",
        position_start_range=400,
        train_steps=5000,
        eval_every=1000,
    )


@hparams_sets.register("universal_transformer_reverse")
def universal_transformer_reverse():
    """Reversing on two cores: universal_transformer_algorithmic with the inputs numbered back from their end."""
    return _change(universal_transformer_algorithmic(), input_position_numbering="end")


@hparams_sets.register("adaptive_universal_transformer_algorithmic")
def adaptive_universal_transformer_algorithmic():
    """Copy, reverse, addition on two cores with ACT: as universal_transformer_algorithmic, at most 6 steps."""
    return _change(universal_transformer_algorithmic(), recurrence_type="act", act_type="accumulated", act_max_steps=6)


@hparams_sets.register("transformer_babi")
def transformer_babi():
    """bAbI on two cores, baseline: an encoder of 8 different blocks of the size of universal_transformer_babi."""
    return HParams(model="transformer_encoder", num_hidden_layers=8).override(
        _recipe_of(universal_transformer_babi(), "transformer_encoder")
    )


@hparams_sets.register("transformer_algorithmic")
def transformer_algorithmic():
    """Copy, reverse, addition on two cores, baseline: 4 different blocks a side."""
    return HParams(model="transformer", num_hidden_layers=4).override(
        _recipe_of(universal_transformer_algorithmic(), "transformer")
    )


@hparams_sets.register("lstm_seq2seq")
def lstm_seq2seq():
    """Copy, reverse, addition on two cores, baseline: LSTM encoder and decoder of width 128, no attention."""
    recipe = _recipe_of(universal_transformer_algorithmic(), "lstm_seq2seq")
    return HParams(model="lstm_seq2seq", num_hidden_layers=1).override({**recipe, "hidden_size": 128})


@hparams_sets.register("lstm_seq2seq_attention")
def lstm_seq2seq_attention():
    """Copy, reverse, addition on two cores, baseline: as lstm_seq2seq, with attention."""
    return _change(lstm_seq2seq(), model="lstm_seq2seq_attention")


def _recipe_of(hparams, model):
    """What another model can take over from a set: the hyperparameters that both have, the depth left out."""
    values = _change(hparams, model=model).relevant()
    return {name: value for name, value in values.items() if name not in ("num_hidden_layers", "model")}
