"""Our own sets `*_paper`: the paper's equations (arXiv 1807.03819v3), for its tasks. Standard library only.

Every one of them has post-norm (equations 4 and 5), sinusoids of position and of step, interleaved and from 1, added
up in every step (6 and 7), and no target-space embedding; halting, where there is any, is the text's (section 2.2): a
position that halts keeps its state (act_type frozen). The listing of appendix C is `--hparams=act_type=basic`.

The paper gives hardly a number beside those equations. What it does not give is from its authors' code: sizes of
universal_transformer_tiny, small and base, the schedule, Adam's constants, threshold 0.99, ponder cost 0.01 and halting
bias 1, and separable convolutions everywhere but in translation (their default until September 2018; a position-wise
network is `--hparams=transformer_ffn_type=fc`). Numbers that neither gives are called ours. These are sets for GPUs and
days; those that the README's results were measured with are in cpu_configs.py.
"""

from ut_keras.models.configs import universal_transformer_base, universal_transformer_small, universal_transformer_tiny
from ut_keras.models.transformer_configs import change
from ut_keras.registry import hparams_sets


def _paper(hparams, **changes):
    """Returns a set with the paper's equations; `changes` are applied over them."""
    equations = {
        "use_target_space_embedding": False,
        "layer_preprocess_sequence": "none",
        "layer_postprocess_sequence": "dan",
        "timing_layout": "paper",
        "step_timing_signal_type": "sinusoid",
        "transformer_ffn_type": "sepconv",
        "act_max_steps": 12,
    }
    return change(hparams, **{**equations, **changes})


def _halting(hparams):
    return change(hparams, recurrence_type="act", act_type="frozen")


@hparams_sets.register("universal_transformer_base_paper")
def universal_transformer_base_paper():
    """The paper's translation (table 7), base: 6 steps, 1024/4096/16, fc, no halting. No score measured here.

    python -m trainer --problem=translate_ende_wmt32k; the paper's BLEU on newstest2014 is 28.9, on 8 P100.
    """
    return _paper(universal_transformer_base(), transformer_ffn_type="fc")


@hparams_sets.register("universal_transformer_small_paper")
def universal_transformer_small_paper():
    """The paper's translation (table 7), small: 6 steps, 512/2048/8, fc, no halting. No score measured here.

    python -m trainer --problem=translate_ende_wmt32k; the paper's BLEU on newstest2014 is 26.8.
    """
    return _paper(universal_transformer_small(), transformer_ffn_type="fc")


@hparams_sets.register("universal_transformer_babi_paper")
def universal_transformer_babi_paper():
    """The paper's bAbI (table 1): encoder, 8 fixed steps, 128/512/4, positions from the start. No score measured here.

    python -m trainer --problem=babi_qa_sentence_all_tasks_10k; 100,000 updates as in the authors' README. Batches of
    256 examples are ours: theirs were of 4096.
    """
    return _paper(
        universal_transformer_tiny(),
        model="universal_transformer_encoder",
        input_position_numbering="start",
        use_fixed_batch_size=True,
        batch_size=256,
        train_steps=100000,
    )


@hparams_sets.register("adaptive_universal_transformer_babi_paper")
def adaptive_universal_transformer_babi_paper():
    """The paper's bAbI with halting (table 1): as universal_transformer_babi_paper, up to 12 steps. No score measured.

    The paper's mean ponder times are 2.3, 3.1 and 3.8 steps for one, two and three supporting facts.
    """
    return _halting(universal_transformer_babi_paper())


@hparams_sets.register("universal_transformer_sva_lm_paper")
def universal_transformer_sva_lm_paper():
    """The paper's agreement (table 2): a language model, 6 fixed steps, 512/2048/8. No score measured here.

    python -m trainer --problem=sva_language_modeling. The size is ours.
    """
    return _paper(universal_transformer_small(), model="universal_transformer_lm")


@hparams_sets.register("adaptive_universal_transformer_sva_lm_paper")
def adaptive_universal_transformer_sva_lm_paper():
    """The paper's agreement with halting (table 2): up to 12 steps, 512/2048/8. No score measured here."""
    return _halting(universal_transformer_sva_lm_paper())


@hparams_sets.register("universal_transformer_lambada_lm_paper")
def universal_transformer_lambada_lm_paper():
    """The paper's LAMBADA language model (table 3): 6 fixed steps, 1024/4096/16. No score measured here.

    python -m trainer --problem=lambada_lm; the table's other rows are --hparams=num_rec_steps=8 and 9.
    """
    return _paper(universal_transformer_base(), model="universal_transformer_lm")


@hparams_sets.register("adaptive_universal_transformer_lambada_lm_paper")
def adaptive_universal_transformer_lambada_lm_paper():
    """The paper's LAMBADA language model with halting (table 3): up to 12 steps. No score measured here.

    The paper's mean ponder time is 8.2 steps.
    """
    return _halting(universal_transformer_lambada_lm_paper())


@hparams_sets.register("universal_transformer_lambada_rc_paper")
def universal_transformer_lambada_rc_paper():
    """The paper's LAMBADA reading comprehension (table 3): encoder, 6 fixed steps, 1024/4096/16. No score measured.

    python -m trainer --problem=lambada_rc
    """
    return _paper(universal_transformer_base(), model="universal_transformer_encoder")


@hparams_sets.register("adaptive_universal_transformer_lambada_rc_paper")
def adaptive_universal_transformer_lambada_rc_paper():
    """The paper's LAMBADA reading comprehension with halting (table 3): up to 12 steps. No score measured here."""
    return _halting(universal_transformer_lambada_rc_paper())


@hparams_sets.register("universal_transformer_algorithmic_paper")
def universal_transformer_algorithmic_paper():
    """The paper's copy, reverse and addition (table 4): 8 fixed steps, 128/512/4, random offsets. No score measured.

    python -m trainer --problem=algorithmic_reverse_decimal40 (or identity, addition). Offsets are below 400, one for
    both sides of an example, so that positions up to 440 are met in training; size and steps are ours.
    """
    return _paper(universal_transformer_tiny(), position_start_index="random", position_start_range=400)


@hparams_sets.register("universal_transformer_memory_paper")
def universal_transformer_memory_paper():
    """The paper's learning to execute, copy, double and reverse (table 5): 8 steps, 128/512/4. No score measured here.

    python -m trainer --problem=learning_to_execute_copy (or double, reverse). Size and steps are ours.
    """
    return _paper(universal_transformer_tiny())


@hparams_sets.register("universal_transformer_program_paper")
def universal_transformer_program_paper():
    """The paper's learning to execute, program, control and addition (table 6): 6 steps, 512/2048/8. No score measured.

    python -m trainer --problem=learning_to_execute_program (or control, addition). Size and steps are ours.
    """
    return _paper(universal_transformer_small())
