"""tensor2tensor's sets of the Universal Transformer with adaptive computation time. Standard library only.

Their num_rec_steps is read by nothing: act_max_steps is the limit. act_type is T2T's (basic or global); padding neither
halts nor costs here, and `global` halting is causal in the decoder: --hparams=act_count_padding=true,global_over=all
is T2T's arithmetic.
"""

from ut_keras.models.configs import (
    universal_transformer_base,
    universal_transformer_base_tpu,
    universal_transformer_small,
    universal_transformer_tiny,
)
from ut_keras.models.transformer_configs import change
from ut_keras.registry import hparams_sets


def _adaptive(hparams, **changes):
    return change(hparams, recurrence_type="act", **changes)


@hparams_sets.register("adaptive_universal_transformer_small")
def adaptive_universal_transformer_small():
    """T2T's adaptive_universal_transformer_small: ACT up to 12 steps, 512/2048/8. No score measured here."""
    return _adaptive(universal_transformer_small())


@hparams_sets.register("adaptive_universal_transformer_base")
def adaptive_universal_transformer_base():
    """T2T's adaptive_universal_transformer_base: ACT up to 12 steps, 1024/4096/16. No score measured here."""
    return _adaptive(universal_transformer_base())


@hparams_sets.register("adaptive_universal_transformer_tiny")
def adaptive_universal_transformer_tiny():
    """T2T's adaptive_universal_transformer_tiny: ACT up to 4 steps, 128/512/4. No score measured here."""
    return _adaptive(universal_transformer_tiny())


@hparams_sets.register("adaptive_universal_transformer_base_tpu")
def adaptive_universal_transformer_base_tpu():
    """T2T's adaptive_universal_transformer_base_tpu: base, Adafactor, no step signal. No score measured here."""
    return _adaptive(universal_transformer_base_tpu())


@hparams_sets.register("adaptive_universal_transformer_multilayer_tpu")
def adaptive_universal_transformer_multilayer_tpu():
    """T2T's adaptive_universal_transformer_multilayer_tpu: 2 blocks a step, plain ones around. No score measured here.

    A plain block before and after the recurrence, separable convolutions, Adafactor, no step signal.
    """
    return change(
        adaptive_universal_transformer_base_tpu(),
        num_inrecurrence_layers=2,
        mix_with_transformer="before_ut,after_ut",
        num_mixedin_layers=1,
        transformer_ffn_type="sepconv",
    )


@hparams_sets.register("adaptive_universal_transformer_multilayer_hard")
def adaptive_universal_transformer_multilayer_hard():
    """T2T's adaptive_universal_transformer_multilayer_hard: multilayer_tpu, hard attention. No score measured here.

    8 keys a query, relative positions up to 256, the step signal, 256 tokens a batch. T2T's
    dot_product_relative_v2 looks left alone, also in its encoder, and leaves hard attention out there; here it looks
    to both sides in encoders, and hard attention holds everywhere.
    """
    return change(
        adaptive_universal_transformer_multilayer_tpu(),
        batch_size=256,
        hard_attention_k=8,
        add_step_timing_signal=True,
        self_attention_type="dot_product_relative_v2",
        max_relative_position=256,
    )


@hparams_sets.register("adaptive_universal_transformer_sepconv_tiny")
def adaptive_universal_transformer_sepconv_tiny():
    """T2T's adaptive_universal_transformer_sepconv_tiny: tiny, separable convolutions. No score measured here."""
    return _adaptive(universal_transformer_tiny(), transformer_ffn_type="sepconv")


@hparams_sets.register("adaptive_universal_transformer_global_base")
def adaptive_universal_transformer_global_base():
    """T2T's adaptive_universal_transformer_global_base: base, sequences halt as a whole. No score measured here."""
    return _adaptive(universal_transformer_base(), act_type="global")


@hparams_sets.register("adaptive_universal_transformer_global_base_tpu")
def adaptive_universal_transformer_global_base_tpu():
    """T2T's adaptive_universal_transformer_global_base_tpu: global_base, Adafactor. No score measured here."""
    return _adaptive(universal_transformer_base_tpu(), act_type="global")


@hparams_sets.register("adaptive_universal_transformer_tall")
def adaptive_universal_transformer_tall():
    """T2T's adaptive_universal_transformer_tall: ACT up to 24 steps, 512/2048/8. No score measured here."""
    return _adaptive(universal_transformer_small(), act_max_steps=24, batch_size=1024)


@hparams_sets.register("adaptive_universal_transformer_tall_actlossw0")
def adaptive_universal_transformer_tall_actlossw0():
    """T2T's adaptive_universal_transformer_tall_actlossw0: tall, steps cost nothing. No score measured here."""
    return change(adaptive_universal_transformer_tall(), act_loss_weight=0.0)


@hparams_sets.register("adaptive_universal_transformer_tall_actlossw001")
def adaptive_universal_transformer_tall_actlossw001():
    """T2T's adaptive_universal_transformer_tall_actlossw001: tall, ponder cost 0.001. No score measured here.

    The name suggests 0.01, which is what adaptive_universal_transformer_tall has; the value is T2T's.
    """
    return change(adaptive_universal_transformer_tall(), act_loss_weight=0.001)


@hparams_sets.register("adaptive_universal_transformer_base_dropout03")
def adaptive_universal_transformer_base_dropout03():
    """T2T's adaptive_universal_transformer_base_dropout03: base, every dropout 0.3. No score measured here."""
    return _dropout(adaptive_universal_transformer_base(), 0.3)


@hparams_sets.register("adaptive_universal_transformer_base_dropout05")
def adaptive_universal_transformer_base_dropout05():
    """T2T's adaptive_universal_transformer_base_dropout05: base, every dropout 0.5. No score measured here."""
    return _dropout(adaptive_universal_transformer_base(), 0.5)


def _dropout(hparams, rate):
    return change(hparams, layer_prepostprocess_dropout=rate, attention_dropout=rate, relu_dropout=rate)


@hparams_sets.register("adaptive_universal_transformer_position_random_timing_tiny")
def adaptive_universal_transformer_position_random_timing_tiny():
    """T2T's adaptive_universal_transformer_position_random_timing_tiny: tiny, offsets. No score measured here.

    Offsets as in universal_transformer_position_random_timing_tiny.
    """
    return _adaptive(universal_transformer_tiny(), position_start_index="random")


@hparams_sets.register("adaptive_universal_transformer_mix_before_ut_base")
def adaptive_universal_transformer_mix_before_ut_base():
    """T2T's adaptive_universal_transformer_mix_before_ut_base: 2 plain blocks before. No score measured here."""
    return _adaptive(universal_transformer_base(), mix_with_transformer="before_ut")


@hparams_sets.register("adaptive_universal_transformer_mix_after_ut_base")
def adaptive_universal_transformer_mix_after_ut_base():
    """T2T's adaptive_universal_transformer_mix_after_ut_base: 2 plain blocks after. No score measured here."""
    return _adaptive(universal_transformer_base(), mix_with_transformer="after_ut")


@hparams_sets.register("adaptive_universal_transformer_concat_tiny")
def adaptive_universal_transformer_concat_tiny():
    """T2T's adaptive_universal_transformer_concat_tiny: tiny, signals concatenated. No score measured here."""
    return _adaptive(universal_transformer_tiny(), add_or_concat_timing_signal="concat")


@hparams_sets.register("adaptive_universal_transformer_with_sru_base")
def adaptive_universal_transformer_with_sru_base():
    """T2T's adaptive_universal_transformer_with_sru_base: base, two SRU layers a step. No score measured here."""
    return _adaptive(universal_transformer_base(), add_sru=True)
