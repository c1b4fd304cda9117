"""Hyperparameters: one flat, typed, immutable dataclass under tensor2tensor's names.

Standard library only. `HParams.override` is strict: an unknown name, a value of the wrong type and
a hyperparameter that the chosen model does not have are errors that name the way out.
"""

import dataclasses
import json
import re

from ut_keras.assignments import parse_assignments
from ut_keras.errors import UsageError
from ut_keras.hparam_fields import check, hparam, parse, type_name
from ut_keras.registry import near_names

_UT = ("universal_transformer", "universal_transformer_encoder", "universal_transformer_lm")
_TRANSFORMER = ("transformer", "transformer_encoder", "transformer_lm")
_LSTM = ("lstm_seq2seq", "lstm_seq2seq_attention")
_ATTENTIVE = _UT + _TRANSFORMER


@dataclasses.dataclass(frozen=True)
class HParams:
    """Every hyperparameter of every model and of the training recipe, with tensor2tensor's names.

    Immutable: `override` returns a changed copy. `describe` gives each field's line of documentation.

    Example:

    >>> hparams = HParams(model="universal_transformer").override("hidden_size=64, act_type=frozen")
    >>> hparams.hidden_size
    64
    >>> hparams.override("hiden_size=64")
    Traceback (most recent call last):
    ...
    ut_keras.errors.UsageError: no hparam is called 'hiden_size'; near names: hidden_size
    """

    model: str = hparam("universal_transformer", "name of the model that this set belongs to")

    # sizes
    hidden_size: int = hparam(512, "width D of the state", least=1)
    filter_size: int = hparam(2048, "inner width F of the transition", _ATTENTIVE, least=1)
    num_heads: int = hparam(8, "attention heads H", _ATTENTIVE, least=1)
    num_hidden_layers: int = hparam(6, "layers of the plain Transformer and the LSTM", _TRANSFORMER + _LSTM, least=1)

    # the block
    transformer_ffn_type: str = hparam("fc", "transition", _ATTENTIVE, ("fc", "sepconv"))
    layer_preprocess_sequence: str = hparam("n", "n: pre-norm; none: post-norm", _ATTENTIVE, ("n", "none"))
    layer_postprocess_sequence: str = hparam("da", "da: pre-norm; dan: post-norm", _ATTENTIVE, ("da", "dan"))
    norm_epsilon: float = hparam(1e-6, "epsilon of the layer norm", _ATTENTIVE)
    self_attention_type: str = hparam(
        "dot_product",
        "self-attention; dot_product_relative_v2 is dot_product_relative here, in encoders to both sides",
        _ATTENTIVE,
        ("dot_product", "dot_product_relative", "dot_product_relative_v2"),
    )
    max_relative_position: int = hparam(0, "clip of relative positions (positions)", _ATTENTIVE)
    hard_attention_k: int = hparam(
        0, "attention weights below the k-th largest become 0, that one is subtracted; 0: soft", _ATTENTIVE
    )
    use_pad_remover: bool = hparam(
        True, "the encoder's fc transition gives 0 at padding (changes no real position)", _ATTENTIVE
    )

    # the recurrence over depth
    recurrence_type: str = hparam(
        "basic",
        "what a step does with the state",
        _UT,
        ("basic", "act", "highway", "skip", "dwa", "rnn", "gru", "lstm"),
    )
    num_rec_steps: int = hparam(6, "steps T, where recurrence_type is not act", _UT, least=1)
    num_inrecurrence_layers: int = hparam(1, "blocks inside one step", _UT, least=1)
    mix_with_transformer: str | None = hparam(
        None,
        "ordinary blocks before or after the recurrence, or both",
        _UT,
        (None, "before_ut", "after_ut", "before_ut,after_ut"),
    )
    num_mixedin_layers: int = hparam(2, "how many of these on each such side", _UT, least=1)
    add_sru: bool = hparam(False, "two SRU layers over the positions at the start of every step", _UT)
    timing_layout: str = hparam(
        "t2t", "t2t: sine and cosine in halves, from 0; paper: interleaved, from 1", _ATTENTIVE, ("t2t", "paper")
    )
    add_position_timing_signal: bool = hparam(True, "add the position's sinusoids at every step", _ATTENTIVE)
    position_start_index: str | None = hparam(
        None, "none, random (one offset per sequence, in training) or step", _ATTENTIVE, (None, "random", "step")
    )
    position_start_range: int = hparam(400, "random offsets are below this (positions)", _ATTENTIVE)
    position_step_length: str = hparam(
        "true", "start index step uses the true or the padded length (T2T)", _UT, ("true", "padded")
    )
    input_position_numbering: str | None = hparam(
        None, "number inputs from start, or back from end; none: end for sentences", _ATTENTIVE, (None, "start", "end")
    )
    add_step_timing_signal: bool = hparam(True, "add the step signal at every step", _UT)
    step_timing_signal_type: str = hparam("learned", "step signal", _UT, ("learned", "sinusoid"))
    add_or_concat_timing_signal: str = hparam("add", "add signals, or concatenate and project", _UT, ("add", "concat"))

    # gates and memory of the recurrence types
    gates_inputs: str = hparam(
        "i", "what gates see: letters of i (original inputs), s (state), t (transformed state)", _UT
    )
    gate_ffn_layer: str = hparam("dense", "layer of a gate", _UT, ("dense", "dense_relu_dense", "dense_dropconnect"))
    dropconnect_dropout: float = hparam(
        0.0, "share of weights dropped by gate_ffn_layer dense_dropconnect", _UT, below=1
    )
    transform_bias_init: float = hparam(-1.0, "initial bias of the transform gate", _UT, least=None)
    couple_carry_transform_gates: bool = hparam(True, "carry gate is 1 - transform gate; else a gate of its own", _UT)
    depth_embedding: bool = hparam(True, "dwa adds a learned vector of the step to each state", _UT)
    dwa_elements: bool = hparam(True, "dwa weighs each channel; else each state as a whole", _UT)
    dwa_softmax: str = hparam(
        "depth",
        "dwa's softmax over the states (depth), or over the channels of each, the newest left out (T2T)",
        _UT,
        ("depth", "channels"),
    )
    gru_mixes: str = hparam(
        "state", "what gru's update gate keeps: the state, or its input (T2T)", _UT, ("state", "input")
    )
    lstm_forget_bias: float = hparam(1.0, "added in lstm's forget gate", _UT, least=None)
    use_memory_as_final_state: bool = hparam(False, "lstm gives its memory instead of its state", _UT)
    add_ffn_unit_to_the_transition_function: bool = hparam(
        False, "gru, lstm and rnn read attention and transition; else attention alone", _UT
    )

    # adaptive computation time
    act_type: str = hparam("basic", "halting form", _UT, ("basic", "accumulated", "global", "random", "frozen"))
    act_max_steps: int = hparam(12, "most steps under act", _UT, least=1)
    act_epsilon: float = hparam(0.01, "a position halts at 1 - this", _UT, below=1)
    act_halting_bias_init: float = hparam(1.0, "initial bias of the halting unit", _UT, least=None)
    act_loss_weight: float = hparam(0.01, "weight of the ponder cost (mean of steps + remainder)", _UT)
    act_loss_warmup_steps: int = hparam(0, "training steps over which that weight rises from 0", _UT)
    act_remainder_at_limit: bool = hparam(
        True, "accumulated and frozen pay the remainder at act_max_steps (T2T: false)", _UT
    )
    act_count_padding: bool = hparam(False, "padding halts, prolongs the loop and counts in the cost (T2T: true)", _UT)
    global_over: str = hparam(
        "prefix", "mean of global halting in the decoder: prefix (causal) or all (T2T)", _UT, ("prefix", "all")
    )

    # embedding and head
    shared_embedding_and_softmax_weights: bool = hparam(True, "one table for inputs, targets and softmax", _ATTENTIVE)
    multiply_embedding_mode: str = hparam(
        "sqrt_depth", "scale of looked-up embeddings", _ATTENTIVE, ("sqrt_depth", "none")
    )
    use_target_space_embedding: bool = hparam(False, "add a learned vector of the target space", _ATTENTIVE)
    target_space_id: int = hparam(0, "row of that table (0 to 31)", _ATTENTIVE, below=32)

    # dropout
    layer_prepostprocess_dropout: float = hparam(0.1, "dropout after each sub-layer and on the embedding", below=1)
    attention_dropout: float = hparam(0.1, "dropout on attention weights", _ATTENTIVE, below=1)
    relu_dropout: float = hparam(0.1, "dropout inside the transition", _ATTENTIVE, below=1)

    # memory
    remat: bool = hparam(False, "recompute each step in the backward pass: memory flat in steps", _ATTENTIVE)

    activation_dtype: str = hparam(
        "float32",
        "dtype of states; float16 and bfloat16 are mixed precision where --mixed_precision does not say",
        None,
        ("float32", "float16", "bfloat16"),
    )

    # training recipe
    optimizer: str = hparam("adam", "optimizer", None, ("adam", "adafactor", "momentum", "sgd"))
    optimizer_multistep_accumulate_steps: int = hparam(
        0, "one update takes this many times batch_size, in as many parts, one in memory; 0: one part"
    )
    optimizer_adam_beta1: float = hparam(0.9, "decay of the first moment", below=1)
    optimizer_adam_beta2: float = hparam(0.997, "decay of the second moment", below=1)
    optimizer_adam_epsilon: float = hparam(1e-9, "added to the root of the second moment")
    optimizer_adafactor_beta1: float = hparam(0.0, "decay of the momentum of updates; 0: no momentum", below=1)
    optimizer_adafactor_beta2: float = hparam(0.999, "decay of the second moment of decay type adam", below=1)
    optimizer_adafactor_decay_type: str = hparam(
        "pow", "decay of the second moment: 1 - t^-exponent, or adam's", None, ("pow", "adam")
    )
    optimizer_adafactor_memory_exponent: float = hparam(0.8, "exponent of decay type pow")
    optimizer_adafactor_factored: bool = hparam(True, "factor second moments of matrices into rows and columns")
    optimizer_adafactor_clipping_threshold: float = hparam(1.0, "largest root mean square of an update; 0: no limit")
    optimizer_adafactor_multiply_by_parameter_scale: bool = hparam(
        True, "the rate is relative to a weight's root mean square"
    )
    optimizer_momentum_momentum: float = hparam(0.9, "decay of the velocity of optimizer momentum", below=1)
    optimizer_momentum_nesterov: bool = hparam(False, "Nesterov's form of optimizer momentum")
    learning_rate: float = hparam(0.2, "factor of the legacy schedule; no other schedule reads it")
    learning_rate_constant: float = hparam(2.0, "the factor constant of the schedule")
    learning_rate_schedule: str = hparam(
        "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size", "factors of the schedule, joined by *"
    )
    learning_rate_warmup_steps: int = hparam(8000, "steps of warm-up")
    learning_rate_decay_steps: int = hparam(5000, "steps of linear_decay (the last ones), exp_decay, cosdecay", least=1)
    learning_rate_decay_rate: float = hparam(1.0, "base of exp_decay")
    learning_rate_decay_staircase: bool = hparam(False, "exp_decay goes down in steps")
    clip_grad_norm: float = hparam(0.0, "clip gradients to this global norm; 0: never")
    weight_decay: float = hparam(0.0, "decoupled weight decay per step, times the learning rate")
    label_smoothing: float = hparam(0.1, "probability spread over the other classes", below=1)

    # batches
    batch_size: int = hparam(4096, "tokens (source and target, padded) in a global batch", least=1)
    batch_size_per_replica: bool = hparam(False, "batch_size counts for each replica, as in T2T; else for all together")
    use_fixed_batch_size: bool = hparam(False, "batch_size counts examples instead")
    max_length: int = hparam(256, "longest sequence in training (tokens, end token included)", least=1)
    long_examples: str = hparam("drop", "what training does with examples above max_length", None, ("drop", "cut"))
    train_steps: int = hparam(250000, "training steps where --train_steps does not say", least=1)
    eval_every: int = hparam(1000, "steps between evaluations where --eval_every does not say", least=1)

    def __post_init__(self):
        object.__setattr__(self, "optimizer", _our_optimizer(self.optimizer))
        object.__setattr__(self, "mix_with_transformer", _in_order(self.mix_with_transformer))
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, check(field, getattr(self, field.name)))
        _refuse_contradictions(self)

    def override(self, changes, source="--hparams"):
        """Returns a copy with `changes` applied.

        Args:
            changes: "name=value,name=value", or a mapping of names to values or to their text.
            source: the flag to name in messages.

        Raises:
            UsageError: an unknown name, a value of the wrong type or outside of its choices, or a
                hyperparameter that `self.model` does not have.
        """
        if isinstance(changes, str):
            changes = parse_assignments(changes, source)
        fields = {field.name: field for field in dataclasses.fields(self)}
        model = changes.get("model", self.model)
        for name, value in changes.items():
            if name not in fields:
                raise UsageError(f"no hparam is called {name!r}{near_names(name, fields)}")
            models = fields[name].metadata["models"]
            if models and model not in models:
                raise UsageError(
                    f"hparam {name!r} does not belong to model {model!r}; it belongs to {', '.join(models)}"
                )
            if isinstance(value, str):
                changes = {**changes, name: parse(fields[name], value)}
        return dataclasses.replace(self, **changes)

    def to_json(self):
        """Returns the fields as indented JSON text."""
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text):
        """Returns the hyperparameters that `to_json` wrote; UsageError if a name or value is not ours."""
        values = json.loads(text)
        fields = {field.name for field in dataclasses.fields(cls)}
        for name in values:
            if name not in fields:
                raise UsageError(f"no hparam is called {name!r}{near_names(name, fields)}")
        return cls(**values)

    def differences(self, other):
        """Returns {name: (ours, theirs)} for the fields in which two sets differ."""
        pairs = ((f.name, getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self))
        return {name: (ours, theirs) for name, ours, theirs in pairs if ours != theirs}

    def relevant(self):
        """Returns {name: value} of the fields that `self.model` has."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if not field.metadata["models"] or self.model in field.metadata["models"]
        }


@dataclasses.dataclass(frozen=True)
class Features:
    """What a problem gives a model: the part of a problem that shapes its weights.

    Attributes:
        target: "sequence" (targets [B, M]), or "class" (targets [B, 1], one id per example).
        target_vocabulary_size: number of target ids, padding and end token included.
        input_vocabulary_size: number of input ids; None where the problem has no inputs (a language model).
        words_per_sentence: W where inputs are [B, S, W] sentences of words; None for [B, L].
        same_vocabulary: inputs and targets use the same ids, so that one table can serve both.
        pointer: the class is a word of the inputs (ids below 3, padding, end token and unknown word, never are it).
    """

    target: str
    target_vocabulary_size: int
    input_vocabulary_size: int | None = None
    words_per_sentence: int | None = None
    same_vocabulary: bool = True
    pointer: bool = False


def describe():
    """Yields (name, type name, default, models or None, documentation) of each hyperparameter."""
    for field in dataclasses.fields(HParams):
        yield field.name, type_name(field), field.default, field.metadata["models"], field.metadata["doc"]


def _our_optimizer(name):
    """Returns our name of an optimizer under one of tensor2tensor's: "Adafactor", "true_adam", "MultistepAdam"."""
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", str(name)).lower()
    return {"true_adam": "adam", "multistep_adam": "adam"}.get(snake, snake)


def _in_order(sides):
    """Returns the sides of `mix_with_transformer` in the order in which they are passed."""
    sides = sides.replace(" ", "") if isinstance(sides, str) else sides
    return "before_ut,after_ut" if sides == "after_ut,before_ut" else sides


def _refuse_contradictions(hparams):
    """UsageError where two fields do not go together, or a field is wrong in a way that no list of choices says."""
    model, attention, optimizer = hparams.model, hparams.self_attention_type, hparams.optimizer
    if hparams.hidden_size % hparams.num_heads and model in _ATTENTIVE:
        raise UsageError(f"hidden_size={hparams.hidden_size} is not a multiple of num_heads={hparams.num_heads}")
    before, after = hparams.layer_preprocess_sequence, hparams.layer_postprocess_sequence
    if (before == "n") != (after == "da"):
        raise UsageError(
            f"layer_preprocess_sequence={before} does not go with layer_postprocess_sequence={after}: "
            "pre-norm is n and da, post-norm none and dan"
        )
    if hparams.position_start_index == "step" and model not in _UT:
        raise UsageError(f"position_start_index=step needs recurrent steps, which model {model!r} has not")
    if hparams.position_start_index == "random" and hparams.position_start_range < 1:
        raise UsageError("position_start_index=random needs position_start_range > 0")
    if attention != "dot_product" and hparams.max_relative_position < 1:
        raise UsageError(f"self_attention_type={attention} needs max_relative_position > 0")
    if hparams.hard_attention_k == 1:
        raise UsageError("hard_attention_k=1 leaves nothing, the largest weight less itself; take 2 or more, or 0")
    letters = hparams.gates_inputs
    if not letters or len(set(letters)) < len(letters) or not set(letters) <= set("ist"):
        raise UsageError(f"gates_inputs={letters!r} is not one or more of the letters i, s and t, each once")
    if hparams.use_memory_as_final_state and hparams.recurrence_type != "lstm":
        kind = hparams.recurrence_type
        raise UsageError(f"use_memory_as_final_state needs recurrence_type=lstm; {kind} has no memory")
    if optimizer == "momentum" and not hparams.optimizer_momentum_momentum:
        raise UsageError("optimizer=momentum needs optimizer_momentum_momentum > 0; without it is optimizer=sgd")
