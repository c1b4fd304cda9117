"""How a model's answers are searched for. Standard library only: flags are read before TensorFlow is imported."""

import dataclasses
import math

from ut_keras.errors import UsageError

_COUPLINGS = (None, "best", "all")


@dataclasses.dataclass(frozen=True)
class DecodingOptions:
    """The settings of a search, checked when they are made.

    Attributes:
        beam_size: hypotheses kept for each row; 1: the most probable id each time (greedy), or sampling where
            `temperature` > 0.
        alpha: exponent of the length penalty: a hypothesis of n produced ids (end token included) is ranked by its
            log-probability / ((5 + n) / 6)^alpha. 0 is neutral (plain log-probability, which favours short answers);
            larger values favour longer ones. It concerns beams alone.
        n_best: hypotheses returned for each row: of a beam at most `beam_size`; so many samples where `temperature`
            > 0; so many classes where the answer is a class.
        temperature: 0: no randomness; > 0: ids are drawn from softmax(logits / temperature); 1 is neutral.
        top_k: sampling draws from this many most probable ids only; 0 is neutral (all of them).
        top_p: sampling draws from the smallest set of most probable ids whose probability (after `temperature` and
            `top_k`) reaches this; 1 is neutral.
        seed: of the sampling. With the key of a row it decides each draw of that row, whatever stands beside it.
        max_steps: recurrent steps at most, for elastic depth; None: the model's own.
        coupled_stop: None: each row ends by itself, exactly when nothing better can come. "best" and "all" are
            tensor2tensor's rules, where the rows of a batch end together: a beam when the best finished hypothesis
            of each row ("best"), or all of them ("all"), beat the best that is alive; greedy search at the limit, the
            end token being an id like others. Padding may then be produced, so that a decoder that halts has to count
            it (act_count_padding).
        cached: False: the decoder runs over the whole prefix for each id, as in tensor2tensor. Slow.

    Raises:
        UsageError: a value that makes no sense, alone or with another one.

    Example:

    >>> DecodingOptions(beam_size=4, n_best=2).alpha
    0.6
    """

    beam_size: int = 1
    alpha: float = 0.6
    n_best: int = 1
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    max_steps: int | None = None
    coupled_stop: str | None = None
    cached: bool = True

    def __post_init__(self):
        for name, least in (("beam_size", 1), ("n_best", 1), ("top_k", 0), ("seed", 0), ("max_steps", 1)):
            self._check_integer(name, least)
        for name in ("alpha", "temperature", "top_p"):
            self._check_number(name)
        if self.top_p > 1 or not self.top_p:
            raise UsageError(f"top_p={self.top_p} is no probability above 0: 1 keeps every id, 0.9 the likeliest ones")
        if self.coupled_stop not in _COUPLINGS:
            raise UsageError(f"coupled_stop={self.coupled_stop!r} is not one of None, 'best', 'all'")
        if not isinstance(self.cached, bool):
            raise UsageError(f"cached={self.cached!r} is not True or False")
        self._check_together()

    def _check_integer(self, name, least):
        value = getattr(self, name)
        if name == "max_steps" and value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 31:
            raise UsageError(f"{name}={value!r} is not an integer of at least {least} (and below 2^31)")

    def _check_number(self, name):
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise UsageError(f"{name}={value!r} is not a number of at least 0")
        object.__setattr__(self, name, float(value))

    def _check_together(self):
        if self.temperature and self.beam_size > 1:
            raise UsageError(
                f"temperature={self.temperature} samples and beam_size={self.beam_size} searches: leave one out "
                "(n_best gives several samples)"
            )
        if not self.temperature and (self.top_k or self.top_p < 1):
            name = "top_k" if self.top_k else "top_p"
            raise UsageError(f"{name}={getattr(self, name)} restricts sampling: set temperature above 0 as well (1)")
        if self.beam_size > 1 and self.n_best > self.beam_size:
            raise UsageError(f"n_best={self.n_best} is more than beam_size={self.beam_size}: raise beam_size")
        if self.temperature and self.coupled_stop:
            raise UsageError(f"coupled_stop={self.coupled_stop!r} is a rule of greedy and beam search: no temperature")

    def check(self, kind):
        """Raises UsageError where these options make no sense for an answer of this kind.

        Args:
            kind: "sequence", "class" or "continuation", as `ut_keras.decoding.answer.kind_of` says.
        """
        if kind == "class":
            for name in ("beam_size", "temperature"):
                value = getattr(self, name)
                if value != getattr(DecodingOptions, name):
                    raise UsageError(f"{name}={value} searches for a sequence and the answer is a class: leave it out")
        elif self.beam_size == 1 and not self.temperature and self.n_best > 1:
            raise UsageError(
                f"n_best={self.n_best} needs a beam of at least that size (beam_size={self.n_best}) or sampling "
                "(temperature=1)"
            )

    def to_dict(self):
        """Returns {name: value}, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values):
        """Returns the options that `to_dict` wrote; names that are left out have their defaults.

        Raises:
            UsageError: a name that is none of ours, or a wrong value.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in names:
                raise UsageError(f"no decoding option is called {name!r}; there are {', '.join(names)}")
        return cls(**values)
