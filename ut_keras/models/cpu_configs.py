"""Our own hyperparameter sets: small models and recipes for minutes on two CPU cores. Standard library only."""

from ut_keras.hparams import HParams
from ut_keras.models.configs import universal_transformer_tiny
from ut_keras.models.transformer_configs import change
from ut_keras.registry import hparams_sets


def _cpu_recipe(hparams):
    """A recipe for minutes on two cores: Adam at 1e-3 between warm-up and a linear end, batches of examples."""
    return change(
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
    return change(
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
    return change(universal_transformer_babi(), recurrence_type="act", act_type="accumulated", act_max_steps=8)


@hparams_sets.register("universal_transformer_algorithmic")
def universal_transformer_algorithmic():
    """Copy and addition on two cores: 4 fixed steps, 64/256/4, random position offsets (the paper's, for lengths)."""
    return change(
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
    return change(universal_transformer_algorithmic(), input_position_numbering="end")


@hparams_sets.register("adaptive_universal_transformer_algorithmic")
def adaptive_universal_transformer_algorithmic():
    """Copy, reverse, addition on two cores with ACT: as universal_transformer_algorithmic, at most 6 steps."""
    return change(universal_transformer_algorithmic(), recurrence_type="act", act_type="accumulated", act_max_steps=6)


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
    return change(lstm_seq2seq(), model="lstm_seq2seq_attention")


def _recipe_of(hparams, model):
    """What another model can take over from a set: the hyperparameters that both have, the depth left out."""
    values = change(hparams, model=model).relevant()
    return {name: value for name, value in values.items() if name not in ("num_hidden_layers", "model")}


@hparams_sets.register("universal_transformer_text_pairs")
def universal_transformer_text_pairs():
    """Texts to texts on two cores: 6 fixed steps, 128/1024/4, batches of 4096 tokens.

    Measured as universal_transformer_multi30k.
    """
    return change(
        _cpu_recipe(universal_transformer_tiny()),
        filter_size=1024,
        num_rec_steps=6,
        learning_rate_constant=2e-3,
        learning_rate_warmup_steps=400,
        learning_rate_decay_steps=6000,
        label_smoothing=0.1,
        use_fixed_batch_size=False,
        batch_size=4096,
        max_length=128,
        train_steps=7000,
        eval_every=500,
    )


@hparams_sets.register("universal_transformer_multi30k")
def universal_transformer_multi30k():
    """Multi30k on two cores: universal_transformer_text_pairs with dropout 0.2 for its 29,000 pairs.

    python -m trainer --problem=translate_multi30k_ende: see README.md, Results.
    """
    return change(universal_transformer_text_pairs(), layer_prepostprocess_dropout=0.2)


@hparams_sets.register("universal_transformer_scan")
def universal_transformer_scan():
    """SCAN on two cores: 4 fixed steps, 64/256/4, 64 examples a batch, no dropout.

    python -m trainer --problem=scan_simple: exact accuracy 1.000 over 1,000 test commands; README.md, Results.
    """
    return change(
        _cpu_recipe(universal_transformer_tiny()),
        hidden_size=64,
        filter_size=256,
        num_rec_steps=4,
        layer_prepostprocess_dropout=0.0,
        learning_rate_decay_steps=4000,
        train_steps=12000,
        eval_every=1000,
    )


@hparams_sets.register("universal_transformer_memory")
def universal_transformer_memory():
    """Learning to execute, copy and double, on two cores: as universal_transformer_algorithmic, offsets to 60.

    python -m trainer --problem=learning_to_execute_copy: after 3000 steps, 284 s of CPU time, free-running
    sequence accuracy 1.0000 over the 1,000 strings of test. Double: no score measured here.
    """
    return change(universal_transformer_algorithmic(), position_start_range=60, train_steps=3000)


@hparams_sets.register("universal_transformer_memory_reverse")
def universal_transformer_memory_reverse():
    """Learning to execute, reverse, on two cores: universal_transformer_memory with the inputs numbered from their end.

    No score measured here.
    """
    return change(universal_transformer_memory(), input_position_numbering="end")


@hparams_sets.register("universal_transformer_program")
def universal_transformer_program():
    """Learning to execute, program, control and addition, on two cores: 6 fixed steps, 128/512/4.

    No score measured here.
    """
    return change(
        _cpu_recipe(universal_transformer_tiny()),
        num_rec_steps=6,
        batch_size=128,
        learning_rate_decay_steps=5000,
        train_steps=20000,
        eval_every=1000,
    )


@hparams_sets.register("universal_transformer_text_lm")
def universal_transformer_text_lm():
    """A language model of lines on two cores: 4 fixed steps, 128/512/4, 2048 tokens a batch. No score measured here."""
    return change(
        universal_transformer_text_pairs(),
        model="universal_transformer_lm",
        filter_size=512,
        num_rec_steps=4,
        batch_size=2048,
        max_length=256,
    )


@hparams_sets.register("universal_transformer_text_class")
def universal_transformer_text_class():
    """One class per line on two cores: encoder, 4 fixed steps, 64/256/4, 64 lines a batch. No score measured here."""
    return change(
        universal_transformer_babi(),
        num_rec_steps=4,
        input_position_numbering=None,
        train_steps=3000,
        eval_every=500,
    )


@hparams_sets.register("universal_transformer_sva")
def universal_transformer_sva():
    """Number of a verb: encoder, 6 fixed steps, 128/512/4, 64 sentences a batch. No score measured here."""
    return change(
        _cpu_recipe(universal_transformer_tiny()),
        model="universal_transformer_encoder",
        num_rec_steps=6,
        learning_rate_decay_steps=3000,
        train_steps=10000,
        eval_every=1000,
    )


@hparams_sets.register("universal_transformer_sva_lm")
def universal_transformer_sva_lm():
    """Language model up to the verb, otherwise as universal_transformer_sva. No score measured here."""
    return change(universal_transformer_sva(), model="universal_transformer_lm")


@hparams_sets.register("universal_transformer_lambada_lm")
def universal_transformer_lambada_lm():
    """LAMBADA's language model on two cores: 4 fixed steps, 128/512/4, 16 passages a batch. No score measured here.

    --problem=lambada_lm --problem_args=vocabulary_size=10000 is what two cores carry: the softmax is most of the cost,
    and with all 60,000 words a step takes about four times as long and scoring 2 GB of memory.
    """
    return change(
        _cpu_recipe(universal_transformer_tiny()),
        num_rec_steps=4,
        batch_size=16,
        learning_rate_decay_steps=5000,
        train_steps=10000,
        eval_every=1000,
    )


@hparams_sets.register("universal_transformer_lambada_rc")
def universal_transformer_lambada_rc():
    """LAMBADA's reading comprehension on two cores: encoder, 4 fixed steps, 128/512/4. No score measured here.

    --problem=lambada_rc; the head chooses a word of the passage, so that a large vocabulary costs little.
    """
    return change(
        _cpu_recipe(universal_transformer_tiny()),
        model="universal_transformer_encoder",
        num_rec_steps=4,
        input_position_numbering="end",
        batch_size=32,
        learning_rate_decay_steps=3000,
        train_steps=5000,
        eval_every=500,
    )
