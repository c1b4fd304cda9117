"""Hyperparameters: one flat, typed, immutable dataclass under tensor2tensor's names.

Standard library only. `HParams.override` is strict: an unknown name, a value of the wrong type and
a hyperparameter that the chosen model does not have are errors that name the way out.
"""

import dataclasses
import json
import math

from ut_keras.errors import UsageError
from ut_keras.registry import near_names

_UT = ("universal_transformer", "universal_transformer_encoder", "universal_transformer_lm")
_TRANSFORMER = ("transformer", "transformer_encoder", "transformer_lm")
_LSTM = ("lstm_seq2seq", "lstm_seq2seq_attention")
_ATTENTIVE = _UT + _TRANSFORMER
_FALSE = ("false", "f", "no", "n", "0")
_TRUE = ("true", "t", "yes", "y", "1")


def _field(default, doc, models=None, choices=None, least=0, below=None):
    """A field; numbers are `least` or more and less than `below`, where these are not None."""
    limits = {"least": least, "below": below}
    return dataclasses.field(default=default, metadata={"doc": doc, "models": models, "choices": choices, **limits})


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

    model: str = _field("universal_transformer", "name of the model that this set belongs to")

    # sizes
    hidden_size: int = _field(512, "width D of the state", least=1)
    filter_size: int = _field(2048, "inner width F of the transition", _ATTENTIVE, least=1)
    num_heads: int = _field(8, "attention heads H", _ATTENTIVE, least=1)
    num_hidden_layers: int = _field(6, "layers of the plain Transformer and the LSTM", _TRANSFORMER + _LSTM, least=1)

    # the block
    transformer_ffn_type: str = _field("fc", "transition", _ATTENTIVE, ("fc", "sepconv"))
    layer_preprocess_sequence: str = _field("n", "n: pre-norm; none: post-norm", _ATTENTIVE, ("n", "none"))
    layer_postprocess_sequence: str = _field("da", "da: pre-norm; dan: post-norm", _ATTENTIVE, ("da", "dan"))
    norm_epsilon: float = _field(1e-6, "epsilon of the layer norm", _ATTENTIVE)
    self_attention_type: str = _field(
        "dot_product", "self-attention", _ATTENTIVE, ("dot_product", "dot_product_relative")
    )
    max_relative_position: int = _field(0, "clip of relative positions (positions)", _ATTENTIVE)
    use_pad_remover: bool = _field(
        True, "the encoder's fc transition gives 0 at padding (changes no real position)", _ATTENTIVE
    )

    # the recurrence over depth
    recurrence_type: str = _field("basic", "what a step does with the state", _UT, ("basic", "act"))
    num_rec_steps: int = _field(6, "steps T, where recurrence_type is not act", _UT, least=1)
    num_inrecurrence_layers: int = _field(1, "blocks inside one step", _UT, least=1)
    timing_layout: str = _field(
        "t2t", "t2t: sine and cosine in halves, from 0; paper: interleaved, from 1", _ATTENTIVE, ("t2t", "paper")
    )
    add_position_timing_signal: bool = _field(True, "add the position's sinusoids at every step", _ATTENTIVE)
    position_start_index: str | None = _field(
        None, "none, random (one offset per sequence, in training) or step", _ATTENTIVE, (None, "random", "step")
    )
    position_start_range: int = _field(400, "random offsets are below this (positions)", _ATTENTIVE)
    position_step_length: str = _field(
        "true", "start index step uses the true or the padded length (T2T)", _UT, ("true", "padded")
    )
    input_position_numbering: str | None = _field(
        None, "number inputs from start, or back from end; none: end for sentences", _ATTENTIVE, (None, "start", "end")
    )
    add_step_timing_signal: bool = _field(True, "add the step signal at every step", _UT)
    step_timing_signal_type: str = _field("learned", "step signal", _UT, ("learned", "sinusoid"))
    add_or_concat_timing_signal: str = _field("add", "add signals, or concatenate and project", _UT, ("add", "concat"))

    # adaptive computation time
    act_type: str = _field("basic", "halting form", _UT, ("basic", "accumulated", "global", "random", "frozen"))
    act_max_steps: int = _field(12, "most steps under act", _UT, least=1)
    act_epsilon: float = _field(0.01, "a position halts at 1 - this", _UT, below=1)
    act_halting_bias_init: float = _field(1.0, "initial bias of the halting unit", _UT, least=None)
    act_loss_weight: float = _field(0.01, "weight of the ponder cost (mean of steps + remainder)", _UT)
    act_loss_warmup_steps: int = _field(0, "training steps over which that weight rises from 0", _UT)
    act_remainder_at_limit: bool = _field(
        True, "accumulated and frozen pay the remainder at act_max_steps (T2T: false)", _UT
    )
    act_count_padding: bool = _field(False, "padding halts, prolongs the loop and counts in the cost (T2T: true)", _UT)
    global_over: str = _field(
        "prefix", "mean of global halting in the decoder: prefix (causal) or all (T2T)", _UT, ("prefix", "all")
    )

    # embedding and head
    shared_embedding_and_softmax_weights: bool = _field(True, "one table for inputs, targets and softmax", _ATTENTIVE)
    multiply_embedding_mode: str = _field(
        "sqrt_depth", "scale of looked-up embeddings", _ATTENTIVE, ("sqrt_depth", "none")
    )
    use_target_space_embedding: bool = _field(False, "add a learned vector of the target space", _ATTENTIVE)
    target_space_id: int = _field(0, "row of that table (0 to 31)", _ATTENTIVE, below=32)

    # dropout
    layer_prepostprocess_dropout: float = _field(0.1, "dropout after each sub-layer and on the embedding", below=1)
    attention_dropout: float = _field(0.1, "dropout on attention weights", _ATTENTIVE, below=1)
    relu_dropout: float = _field(0.1, "dropout inside the transition", _ATTENTIVE, below=1)

    # memory
    remat: bool = _field(False, "recompute each step in the backward pass: memory flat in steps", _ATTENTIVE)

    # training recipe
    optimizer: str = _field("adam", "optimizer", None, ("adam", "adafactor", "momentum", "sgd"))
    optimizer_adam_beta1: float = _field(0.9, "decay of the first moment", below=1)
    optimizer_adam_beta2: float = _field(0.997, "decay of the second moment", below=1)
    optimizer_adam_epsilon: float = _field(1e-9, "added to the root of the second moment")
    optimizer_adafactor_beta1: float = _field(0.0, "decay of the momentum of updates; 0: no momentum", below=1)
    optimizer_adafactor_beta2: float = _field(0.999, "decay of the second moment of decay type adam", below=1)
    optimizer_adafactor_decay_type: str = _field(
        "pow", "decay of the second moment: 1 - t^-exponent, or adam's", None, ("pow", "adam")
    )
    optimizer_adafactor_memory_exponent: float = _field(0.8, "exponent of decay type pow")
    optimizer_adafactor_factored: bool = _field(True, "factor second moments of matrices into rows and columns")
    optimizer_adafactor_clipping_threshold: float = _field(1.0, "largest root mean square of an update; 0: no limit")
    optimizer_adafactor_multiply_by_parameter_scale: bool = _field(
        True, "the rate is relative to a weight's root mean square"
    )
    optimizer_momentum_momentum: float = _field(0.9, "decay of the velocity of optimizer momentum", below=1)
    optimizer_momentum_nesterov: bool = _field(False, "Nesterov's form of optimizer momentum")
    learning_rate: float = _field(0.2, "factor of the legacy schedule; no other schedule reads it")
    learning_rate_constant: float = _field(2.0, "the factor constant of the schedule")
    learning_rate_schedule: str = _field(
        "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size", "factors of the schedule, joined by *"
    )
    learning_rate_warmup_steps: int = _field(8000, "steps of warm-up")
    learning_rate_decay_steps: int = _field(5000, "steps of linear_decay (the last ones), exp_decay, cosdecay", least=1)
    learning_rate_decay_rate: float = _field(1.0, "base of exp_decay")
    learning_rate_decay_staircase: bool = _field(False, "exp_decay goes down in steps")
    clip_grad_norm: float = _field(0.0, "clip gradients to this global norm; 0: never")
    weight_decay: float = _field(0.0, "decoupled weight decay per step, times the learning rate")
    label_smoothing: float = _field(0.1, "probability spread over the other classes", below=1)

    # batches
    batch_size: int = _field(4096, "tokens (source and target, padded) in a global batch", least=1)
    batch_size_per_replica: bool = _field(False, "batch_size counts for each replica, as in T2T; else for all together")
    use_fixed_batch_size: bool = _field(False, "batch_size counts examples instead")
    max_length: int = _field(256, "longest sequence in training (tokens, end token included)", least=1)
    long_examples: str = _field("drop", "what training does with examples above max_length", None, ("drop", "cut"))
    train_steps: int = _field(250000, "training steps where --train_steps does not say", least=1)
    eval_every: int = _field(1000, "steps between evaluations where --eval_every does not say", least=1)

    def __post_init__(self):
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _check(field, getattr(self, field.name)))
        if self.hidden_size % self.num_heads and self.model in _ATTENTIVE:
            raise UsageError(f"hidden_size={self.hidden_size} is not a multiple of num_heads={self.num_heads}")
        if (self.layer_preprocess_sequence == "n") != (self.layer_postprocess_sequence == "da"):
            before, after = self.layer_preprocess_sequence, self.layer_postprocess_sequence
            raise UsageError(
                f"layer_preprocess_sequence={before} does not go with layer_postprocess_sequence={after}: "
                "pre-norm is n and da, post-norm none and dan"
            )
        if self.position_start_index == "step" and self.model not in _UT:
            raise UsageError(f"position_start_index=step needs recurrent steps, which model {self.model!r} has not")
        if self.position_start_index == "random" and self.position_start_range < 1:
            raise UsageError("position_start_index=random needs position_start_range > 0")
        if self.self_attention_type == "dot_product_relative" and self.max_relative_position < 1:
            raise UsageError("self_attention_type=dot_product_relative needs max_relative_position > 0")
        if self.optimizer == "momentum" and not self.optimizer_momentum_momentum:
            raise UsageError("optimizer=momentum needs optimizer_momentum_momentum > 0; without it is optimizer=sgd")

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
                changes = {**changes, name: _parse(fields[name], value)}
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
        yield field.name, _type_name(field), field.default, field.metadata["models"], field.metadata["doc"]


def parse_assignments(text, source):
    """Returns {name: text} from "name=value,name=value"; spaces around names and values are dropped.

    A value may be quoted, and a list in brackets keeps its commas. A later name wins over an earlier one.
    """
    result = {}
    for part in _split_commas(text):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{source}: {part.strip()!r} is not name=value")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        result[name.strip()] = value
    return result


def _split_commas(text):
    parts, depth, quote, current = [], 0, "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "[(":
            depth += 1
        elif character in ")]":
            depth -= 1
        if character == "," and not depth and not quote:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    return [part for part in parts if part.strip()]


def _optional(field):
    return field.type not in (int, float, str, bool)


def _type_name(field):
    return "str" if _optional(field) else field.type.__name__


def _parse(field, text):
    kind = _type_name(field)
    if _optional(field) and text.lower() in ("none", "null", ""):
        return None
    if kind == "bool":
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
    elif kind == "str":
        return text
    else:
        try:
            number = float(text)
            if kind == "float":
                return number
            if number == int(number):
                return int(number)
        except (ValueError, OverflowError):
            pass
    raise UsageError(f"hparam {field.name}={text!r} is not {_article(kind)}")


def _check(field, value):
    kind = _type_name(field)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    fits = type(value).__name__ == kind or (value is None and _optional(field))
    if not fits or (kind == "float" and not math.isfinite(value)):
        raise UsageError(f"hparam {field.name}={value!r} is not {_article(kind)}")
    choices = field.metadata["choices"]
    if choices and value not in choices:
        raise UsageError(f"hparam {field.name}={value!r} is not one of {', '.join(str(c) for c in choices)}")
    least, below = field.metadata["least"], field.metadata["below"]
    if kind in ("int", "float") and least is not None and value < least:
        raise UsageError(f"hparam {field.name}={value!r} is less than {least}")
    if kind in ("int", "float") and below is not None and value >= below:
        raise UsageError(f"hparam {field.name}={value!r} is not below {below}")
    return value


def _article(kind):
    return {"int": "an integer", "float": "a number", "bool": "true or false", "str": "a string"}[kind]
