"""tensor2tensor's ranged sets as data: what to vary around a set of hyperparameters. Standard library only.

No command searches them: a tuner of your choice reads `SEARCH_SPACES`, or draws from `sample`.

Those with learning_rate vary a number that the schedule of their set does not read (only `legacy` does; ours and T2T's
alike): vary learning_rate_constant instead. T2T's initializer_gain, 0.5 to 2, is no hparam here and is left out of
transformer_base_range and transformer_tpu_range. weight_decay up to 2 is T2T's penalty in the loss; decoupled, times
the learning rate, as here, 2 is a strong but possible value.
"""

import dataclasses
import math
import random

from ut_keras.errors import UsageError
from ut_keras.registry import hparams_sets, near_names


@dataclasses.dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`, uniform in themselves, or in their logarithm where `log`."""

    low: float
    high: float
    log: bool = False

    def __str__(self):
        return f"{self.low:g} to {self.high:g}{' (logarithmic)' if self.log else ''}"

    def draw(self, generator):
        """Returns a number of the interval; `generator` is a `random.Random`."""
        if not self.log:
            return generator.uniform(self.low, self.high)
        return math.exp(generator.uniform(math.log(self.low), math.log(self.high)))


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """What to vary around a set.

    Attributes:
        hparams_set: name of the set that everything else is taken from.
        ranges: {hparam: tuple of choices, or `Interval`}.
    """

    hparams_set: str
    ranges: dict


_RATE = {"learning_rate": Interval(0.3, 3.0, log=True)}
_SIZES = {
    "hidden_size": (1024, 2048, 4096),
    "filter_size": (2048, 4096, 8192),
    "num_heads": (8, 16, 32),
    "transformer_ffn_type": ("sepconv", "fc"),
}
_TRANSFORMER = {
    **_RATE,
    "learning_rate_warmup_steps": (1000, 2000, 4000, 8000, 16000),
    "optimizer_adam_beta1": Interval(0.85, 0.95),
    "optimizer_adam_beta2": Interval(0.97, 0.99),
}
_DECAY = {"weight_decay": Interval(0.0, 2.0)}

SEARCH_SPACES = {
    "universal_transformer_base_range": SearchSpace(
        "universal_transformer_base", {"num_rec_steps": (6, 8, 10), **_SIZES, **_RATE, **_DECAY}
    ),
    "adaptive_universal_transformer_base_range": SearchSpace(
        "adaptive_universal_transformer_base",
        {"act_max_steps": (8, 16, 32), "act_loss_weight": Interval(0.0, 0.5), **_SIZES, **_RATE, **_DECAY},
    ),
    "transformer_base_range": SearchSpace("transformer_base", {**_TRANSFORMER, "weight_decay": Interval(0.0, 1e-4)}),
    "transformer_tpu_range": SearchSpace("transformer_tpu", {**_TRANSFORMER, **_DECAY}),
    "transformer_tiny_tpu_range": SearchSpace("transformer_tiny_tpu", {**_RATE, **_DECAY}),
}


def sample(name, seed):
    """Returns an `HParams` drawn from a search space: its set with every varied hparam drawn independently.

    Args:
        name: of the space.
        seed: any int; the same seed draws the same values.

    Raises:
        UsageError: there is no space of that name.

    Example:

    >>> sample("universal_transformer_base_range", 0).num_rec_steps in (6, 8, 10)
    True
    """
    if name not in SEARCH_SPACES:
        raise UsageError(f"no search space is called {name!r}{near_names(name, SEARCH_SPACES)}")
    space, generator = SEARCH_SPACES[name], random.Random(seed)
    drawn = {
        hparam: choices.draw(generator) if isinstance(choices, Interval) else generator.choice(choices)
        for hparam, choices in sorted(space.ranges.items())
    }
    return hparams_sets.get(space.hparams_set)().override(drawn)
