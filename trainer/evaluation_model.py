"""The model that is evaluated while another one trains."""

import tensorflow as tf

from trainer.named_tensors import averaged_variables, model_variables
from ut_keras.models.build import build_model


class EvaluationModel:
    """A copy of the trained model on this process's own device, or, where nothing speaks against it, that model itself.

    A copy is wanted where the weights to be scored are not those that train (moving averages), and where these are
    spread over devices: a copy computes like any other model, on the chief alone.

    Args:
        model: the model that trains.
        optimizer: its built optimizer.
        hparams: an `HParams`.
        features: the problem's `Features`.
        strategy: the one that `model` was built under.

    Attributes:
        model: what to evaluate, after `update`.
    """

    def __init__(self, model, optimizer, hparams, features, strategy):
        self.model, self._pairs = model, []
        averages = averaged_variables(model, optimizer)
        if not averages and strategy is tf.distribute.get_strategy():
            return
        self.model = build_model(hparams, features)
        sources = {**model_variables(model), **averages}
        self._pairs = [(to, sources[name]) for name, to in model_variables(self.model).items()]

    def update(self):
        """Brings the copy to where training is."""
        for to, of in self._pairs:
            to.assign(of.numpy())
