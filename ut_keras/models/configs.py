"""tensor2tensor's sets of the Universal Transformer with fixed steps and its own values. Standard library only.

Those with adaptive computation time are in adaptive_configs.py, those with gates or memory in recurrence_configs.py;
what T2T's numbers mean here, in transformer_configs.py. T2T computes num_rec_steps and act_max_steps once, from the
num_hidden_layers of the set below: here they are numbers of their own, and sets of the Universal Transformer have no
num_hidden_layers.
"""

from ut_keras.hparams import HParams
from ut_keras.models.transformer_configs import change, for_tpu
from ut_keras.registry import hparams_sets


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


@hparams_sets.register("universal_transformer_base_tpu")
def universal_transformer_base_tpu():
    """T2T's universal_transformer_base_tpu: base without the step signal, Adafactor. No score measured here."""
    return change(for_tpu(universal_transformer_base()), add_step_timing_signal=False)


@hparams_sets.register("universal_transformer_base_fp16")
def universal_transformer_base_fp16():
    """T2T's universal_transformer_base_fp16: float16, of the size of *small*: 512/2048/8. No score measured here.

    --mixed_precision=mixed_float16 is its default; it scales the loss, as T2T does.
    """
    return change(universal_transformer_small(), activation_dtype="float16")


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


@hparams_sets.register("universal_transformer_teeny")
def universal_transformer_teeny():
    """T2T's universal_transformer_teeny: 10 steps, 128/128/2. No score measured here."""
    return change(universal_transformer_small(), hidden_size=128, filter_size=128, num_heads=2, num_rec_steps=10)


@hparams_sets.register("universal_transformer_tall")
def universal_transformer_tall():
    """T2T's universal_transformer_tall: 16 steps, 512/2048/8. No score measured here."""
    return change(universal_transformer_small(), num_rec_steps=16)


@hparams_sets.register("universal_transformer_small_dropconnect")
def universal_transformer_small_dropconnect():
    """T2T's universal_transformer_small_dropconnect: small; its gates do not exist. No score measured here.

    Its gate_ffn_layer is dense_dropconnect with dropconnect_dropout 0.5, but its recurrence_type is basic, which has no
    gates: it computes what universal_transformer_small does, in T2T as here. With
    --hparams=recurrence_type=highway (or skip) half of the gates' weights are dropped in every training step.
    """
    return change(universal_transformer_small(), gate_ffn_layer="dense_dropconnect", dropconnect_dropout=0.5)


@hparams_sets.register("universal_transformer_position_random_timing_tiny")
def universal_transformer_position_random_timing_tiny():
    """T2T's universal_transformer_position_random_timing_tiny: tiny, random offsets. No score measured here.

    In T2T the offset is one number below the padded length for a whole batch, drawn again in each step and side, in
    evaluation too. Here each sequence has one, below position_start_range (400), in training alone.
    """
    return change(universal_transformer_tiny(), position_start_index="random")


@hparams_sets.register("universal_transformer_position_step_timing_tiny")
def universal_transformer_position_step_timing_tiny():
    """T2T's universal_transformer_position_step_timing_tiny: tiny, a start by the step. No score measured here.

    Positions of step t of T start from floor(L t / T); L is the source's true length here, the padded one in T2T
    (--hparams=position_step_length=padded).
    """
    return change(universal_transformer_tiny(), position_start_index="step")


@hparams_sets.register("universal_transformer_step_sinusoid_timing_tiny")
def universal_transformer_step_sinusoid_timing_tiny():
    """T2T's universal_transformer_step_sinusoid_timing_tiny: tiny, sinusoids of the step. No score measured here."""
    return change(universal_transformer_tiny(), step_timing_signal_type="sinusoid")


@hparams_sets.register("universal_transformer_mix_before_ut_base")
def universal_transformer_mix_before_ut_base():
    """T2T's universal_transformer_mix_before_ut_base: base, 2 plain blocks before. No score measured here."""
    return change(universal_transformer_base(), mix_with_transformer="before_ut")


@hparams_sets.register("universal_transformer_mix_after_ut_base")
def universal_transformer_mix_after_ut_base():
    """T2T's universal_transformer_mix_after_ut_base: base, 2 plain blocks after. No score measured here."""
    return change(universal_transformer_base(), mix_with_transformer="after_ut")


@hparams_sets.register("universal_transformer_sepconv_big")
def universal_transformer_sepconv_big():
    """T2T's universal_transformer_sepconv_big: big with separable convolutions. No score measured here."""
    return change(universal_transformer_big(), transformer_ffn_type="sepconv")


@hparams_sets.register("universal_transformer_sepconv_base")
def universal_transformer_sepconv_base():
    """T2T's universal_transformer_sepconv_base: base with separable convolutions. No score measured here."""
    return change(universal_transformer_base(), transformer_ffn_type="sepconv")


@hparams_sets.register("universal_transformer_sepconv_tiny")
def universal_transformer_sepconv_tiny():
    """T2T's universal_transformer_sepconv_tiny: tiny with separable convolutions. No score measured here."""
    return change(universal_transformer_tiny(), transformer_ffn_type="sepconv")
