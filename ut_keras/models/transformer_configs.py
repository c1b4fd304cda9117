"""tensor2tensor's sets of the plain Transformer, under its names, with its values. Standard library only.

What all of T2T's sets here share, also those of the Universal Transformer:

- batch_size is T2T's number, and counts otherwise: the tokens of source and target together, over all devices, where
  T2T counts the longer of the two on each device. `--hparams=batch_size_per_replica=true` and twice the number are
  about T2T's batch; what a run learns does not depend on the number of devices unless that is asked for.
- learning_rate is read by no schedule but `legacy`.
- weight_decay is decoupled here, and part of the loss in T2T; it is 0 in all of them.
- T2T's "adam" leaves moments of embeddings alone in steps without their word (LazyAdam); ours is Adam, its "true_adam".
- T2T's TPU sets share dropout's noise along positions, batch and heads to save memory; here it is drawn for each value.
"""

import dataclasses

from ut_keras.hparams import HParams
from ut_keras.registry import hparams_sets


def change(hparams, **changes):
    """Returns a copy of a set with some values changed."""
    return dataclasses.replace(hparams, **changes)


def for_tpu(hparams):
    """Returns T2T's recipe for a TPU: Adafactor at rsqrt_decay, 10000 steps of warm-up, up to 64 tokens a sequence."""
    return change(
        hparams,
        optimizer="adafactor",
        learning_rate_schedule="rsqrt_decay",
        learning_rate_warmup_steps=10000,
        max_length=64,
        batch_size=min(hparams.batch_size, 2048),
    )


@hparams_sets.register("transformer_base_v1")
def transformer_base_v1():
    """T2T's transformer_base_v1, as published: post-norm, 6 layers, 512/2048/8. No score measured here."""
    return HParams(
        model="transformer",
        use_target_space_embedding=True,
        layer_preprocess_sequence="none",
        layer_postprocess_sequence="dan",
        attention_dropout=0.0,
        relu_dropout=0.0,
        optimizer_adam_beta2=0.98,
        learning_rate=0.1,
        learning_rate_constant=1.0,
        learning_rate_schedule="legacy",
        learning_rate_warmup_steps=4000,
    )


@hparams_sets.register("transformer_base_v2")
def transformer_base_v2():
    """T2T's transformer_base_v2: pre-norm, the legacy schedule, 6 layers, 512/2048/8. No score measured here."""
    return change(
        transformer_base_v1(),
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        attention_dropout=0.1,
        relu_dropout=0.1,
        learning_rate=0.2,
        learning_rate_warmup_steps=8000,
    )


@hparams_sets.register("transformer_base_v3")
def transformer_base_v3():
    """T2T's transformer_base_v3: 6 layers, 512/2048/8. No score measured here."""
    return change(
        transformer_base_v2(),
        optimizer_adam_beta2=0.997,
        learning_rate_schedule="constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
        learning_rate_constant=2.0,
    )


@hparams_sets.register("transformer_base")
def transformer_base():
    """T2T's transformer_base, which is transformer_base_v3: 6 layers, 512/2048/8. No score measured here."""
    return transformer_base_v3()


@hparams_sets.register("transformer_big")
def transformer_big():
    """T2T's transformer_big: 6 layers, 1024/4096/16, dropout 0.3. No score measured here."""
    return change(
        transformer_base(),
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        batch_size=2048,
        layer_prepostprocess_dropout=0.3,
    )


@hparams_sets.register("transformer_base_single_gpu")
def transformer_base_single_gpu():
    """T2T's transformer_base_single_gpu: transformer_base, 1024 tokens a batch. No score measured here."""
    return change(
        transformer_base(),
        batch_size=1024,
        learning_rate_schedule="constant*linear_warmup*rsqrt_decay",
        learning_rate_constant=0.1,
        learning_rate_warmup_steps=16000,
    )


@hparams_sets.register("transformer_big_single_gpu")
def transformer_big_single_gpu():
    """T2T's transformer_big_single_gpu: transformer_big, dropout 0.1. No score measured here."""
    return change(transformer_big(), layer_prepostprocess_dropout=0.1, learning_rate_warmup_steps=16000)


@hparams_sets.register("transformer_base_multistep8")
def transformer_base_multistep8():
    """T2T's transformer_base_multistep8: transformer_base, each update over 8 batches. No score measured here.

    A step is an update here, with 8 * 4096 tokens taken in 8 parts; T2T counts each part as a step and divides by 8
    in its schedule: --train_steps is an eighth of T2T's for the same training.
    """
    return change(transformer_base(), optimizer_multistep_accumulate_steps=8)


@hparams_sets.register("transformer_small")
def transformer_small():
    """T2T's transformer_small: 2 layers, 256/1024/4. No score measured here."""
    return change(transformer_base(), num_hidden_layers=2, hidden_size=256, filter_size=1024, num_heads=4)


@hparams_sets.register("transformer_tiny")
def transformer_tiny():
    """T2T's transformer_tiny: 2 layers, 128/512/4. No score measured here."""
    return change(transformer_base(), num_hidden_layers=2, hidden_size=128, filter_size=512, num_heads=4)


@hparams_sets.register("transformer_teeny")
def transformer_teeny():
    """T2T's transformer_teeny: 6 layers, 128/128/2. No score measured here."""
    return change(transformer_base(), hidden_size=128, filter_size=128, num_heads=2)


def _relative(hparams):
    """Relative attention in place of the position signal."""
    return change(
        hparams,
        add_position_timing_signal=False,
        self_attention_type="dot_product_relative",
        max_relative_position=20,
    )


@hparams_sets.register("transformer_relative")
def transformer_relative():
    """T2T's transformer_relative: transformer_base with relative positions alone. No score measured here."""
    return _relative(transformer_base())


@hparams_sets.register("transformer_relative_tiny")
def transformer_relative_tiny():
    """T2T's transformer_relative_tiny: transformer_tiny with relative positions alone. No score measured here."""
    return _relative(transformer_tiny())


@hparams_sets.register("transformer_relative_big")
def transformer_relative_big():
    """T2T's transformer_relative_big: transformer_big with relative positions alone. No score measured here."""
    return _relative(transformer_big())


@hparams_sets.register("transformer_tpu")
def transformer_tpu():
    """T2T's transformer_tpu: transformer_base, Adafactor, up to 64 tokens. No score measured here."""
    return for_tpu(transformer_base())


@hparams_sets.register("transformer_packed_tpu")
def transformer_packed_tpu():
    """T2T's transformer_packed_tpu: its older name of transformer_tpu. No score measured here."""
    return transformer_tpu()


@hparams_sets.register("transformer_tiny_tpu")
def transformer_tiny_tpu():
    """T2T's transformer_tiny_tpu: transformer_tiny, Adafactor, up to 64 tokens. No score measured here."""
    return for_tpu(transformer_tiny())


@hparams_sets.register("transformer_small_tpu")
def transformer_small_tpu():
    """T2T's transformer_small_tpu: transformer_small, Adafactor, up to 64 tokens. No score measured here."""
    return for_tpu(transformer_small())


@hparams_sets.register("transformer_big_tpu")
def transformer_big_tpu():
    """T2T's transformer_big_tpu: transformer_big, Adafactor, up to 64 tokens. No score measured here."""
    return for_tpu(transformer_big())
