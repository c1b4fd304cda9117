"""tensor2tensor's sets of the Universal Transformer with gates, depth-wise attention or memory. Standard library only.

At T2T's last commit highway and skip crash, dwa leaves out the newest state and takes its softmax over channels, and
gru mixes its input instead of the state: these sets do the right thing. T2T's arithmetic, where it runs at all, is
--hparams=dwa_softmax=channels and --hparams=gru_mixes=input.
"""

from ut_keras.models.configs import universal_transformer_base, universal_transformer_tall
from ut_keras.models.transformer_configs import change
from ut_keras.registry import hparams_sets


@hparams_sets.register("universal_transformer_skip_base")
def universal_transformer_skip_base():
    """T2T's universal_transformer_skip_base: base, gates to the original inputs. No score measured here."""
    return change(universal_transformer_base(), recurrence_type="skip")


@hparams_sets.register("universal_transformer_highway_base")
def universal_transformer_highway_base():
    """T2T's universal_transformer_highway_base: base, gates to the step before. No score measured here."""
    return change(universal_transformer_base(), recurrence_type="highway")


@hparams_sets.register("universal_transformer_dwa_base")
def universal_transformer_dwa_base():
    """T2T's universal_transformer_dwa_base: base, attention over all steps so far. No score measured here."""
    return change(universal_transformer_base(), recurrence_type="dwa")


@hparams_sets.register("universal_transformer_gru_base")
def universal_transformer_gru_base():
    """T2T's universal_transformer_gru_base: base, a GRU over depth, no step signal. No score measured here."""
    return change(universal_transformer_base(), recurrence_type="gru", add_step_timing_signal=False)


@hparams_sets.register("universal_transformer_lstm_base")
def universal_transformer_lstm_base():
    """T2T's universal_transformer_lstm_base: base, an LSTM over depth, no step signal. No score measured here."""
    return change(universal_transformer_base(), recurrence_type="lstm", add_step_timing_signal=False)


@hparams_sets.register("universal_transformer_lstm_tall")
def universal_transformer_lstm_tall():
    """T2T's universal_transformer_lstm_tall: 16 steps, 512/2048/8, an LSTM over depth. No score measured here."""
    return change(universal_transformer_tall(), recurrence_type="lstm", add_step_timing_signal=False)
