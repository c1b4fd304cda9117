"""One battery of checks that every layer and every model passes. A new layer is ten lines:

    class TestTransition(layer_checks.LayerChecks):
        weight_count = 2 * 4 * 8 + 8 + 4

        def make(self, **kwargs):
            return Transition(8, **kwargs)

        def inputs(self, rng):
            mask = np.array([[True] * 5, [True] * 3 + [False] * 2])
            return {"x": rng.normal(size=[2, 5, 4]).astype("float32"), "padding_mask": mask}

Shapes: B batch, L length. Inputs and outputs have the batch first and, where they have one, the length second.
"""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from ut_keras.losses import TokenCrossEntropy


class LayerChecks:
    """Inherit, set the attributes and write `make` and `inputs`; the checks are the inherited tests.

    Attributes:
        weight_count: number of scalars in all weights.
        unpadded: names of inputs that have no length to pad.
        untrained: parts of the paths of weights that may have gradient 0.
        half_tolerance: largest difference of a 16-bit output from the float32 one, as a share of the largest output.
        xla: whether the layer has to compile with XLA.
    """

    weight_count = None
    unpadded = ()
    untrained = ()
    half_tolerance = 0.05
    xla = True

    def make(self, **kwargs):
        """Returns a new layer or model; `kwargs` go to its constructor (`dtype`)."""
        raise AssertionError(f"{type(self).__name__} has no make()")

    def inputs(self, rng):
        """Returns {name: array}: rows of different lengths, the first of them as long as the arrays.

        A layer gets them by keyword, the first one by position; a model gets the dictionary.
        """
        raise AssertionError(f"{type(self).__name__} has no inputs()")

    def call(self, layer, inputs):
        """Calls the layer on inputs; the result may be any nest of tensors."""
        if isinstance(layer, keras.Model):
            return layer(inputs)
        first, *rest = inputs
        return layer(inputs[first], **{name: inputs[name] for name in rest})

    def real(self, inputs):
        """Returns the [B, L] mask of the outputs' positions that count; None where outputs have no length."""
        if "padding_mask" in inputs:
            return np.array(inputs["padding_mask"])
        if "targets" in inputs:
            return np.array(inputs["targets"]) != 0
        return np.ones(np.shape(next(iter(inputs.values())))[:2], bool)

    def test_config_round_trip_gives_the_same_layer(self, rng):
        layer, inputs = self.make(), self.inputs(rng)
        outputs = self.call(layer, inputs)
        config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
        copy = keras.saving.deserialize_keras_object(config)
        assert type(copy) is type(layer)
        assert json.dumps(copy.get_config(), sort_keys=True) == json.dumps(layer.get_config(), sort_keys=True)
        self.call(copy, inputs)
        copy.set_weights(layer.get_weights())
        _assert_equal(self.call(copy, inputs), outputs)

    def test_weight_count(self, rng):
        layer = self.make()
        self.call(layer, self.inputs(rng))
        assert sum(int(np.prod(weight.shape)) for weight in layer.trainable_variables) == self.weight_count

    def test_symbolic_call_fits_the_eager_one(self, rng):
        layer, inputs = self.make(), self.inputs(rng)
        outputs = self.call(layer, inputs)
        symbolic = {
            name: keras.KerasTensor([None if axis < 2 else size for axis, size in enumerate(value.shape)], value.dtype)
            for name, value in inputs.items()
        }
        specs = tf.nest.flatten(self.call(layer, symbolic))
        for spec, output in zip(specs, tf.nest.flatten(outputs), strict=True):
            assert spec.dtype == output.dtype.name
            assert tf.TensorShape(spec.shape).is_compatible_with(output.shape)

    def test_graph_call_equals_the_eager_one(self, rng):
        layer, inputs = self.make(), self.inputs(rng)
        outputs = self.call(layer, inputs)
        specs = {
            name: tf.TensorSpec([None] * min(2, value.ndim) + list(value.shape[2:]), value.dtype)
            for name, value in inputs.items()
        }
        graph = tf.function(lambda values: self.call(layer, values), input_signature=[specs])
        _assert_equal(graph({name: tf.constant(value) for name, value in inputs.items()}), outputs)

    def test_saved_and_loaded_layer_gives_the_same(self, rng, tmp_path):
        layer, inputs = self.make(), self.inputs(rng)
        outputs = self.call(layer, inputs)
        if isinstance(layer, keras.Model):
            layer.save(tmp_path / "model.keras")
            loaded = keras.models.load_model(tmp_path / "model.keras")
            _assert_equal(self.call(loaded, inputs), outputs)
            return
        symbolic = {name: keras.Input(value.shape[1:], name=name, dtype=value.dtype) for name, value in inputs.items()}
        model = keras.Model(symbolic, self.call(layer, symbolic))
        model.save(tmp_path / "model.keras")
        _assert_equal(keras.models.load_model(tmp_path / "model.keras")(inputs), outputs)

    def test_compiled_training_step_reaches_every_weight(self, rng):
        layer, inputs = self.make(), self.inputs(rng)
        loss, gradients = self._step(layer, inputs)
        assert np.isfinite(loss)
        for weight, gradient in zip(layer.trainable_variables, gradients, strict=True):
            assert gradient is not None, f"{weight.path} has no gradient"
            assert np.all(np.isfinite(gradient)), f"{weight.path} has a gradient that is not finite"
            if not any(part in weight.path for part in self.untrained):
                assert np.any(gradient != 0), f"{weight.path} has gradient 0 everywhere"

    @pytest.mark.slow
    def test_xla_step_equals_the_graph_step(self, rng):
        if not self.xla:
            pytest.skip("the class says that it is not for XLA")
        layer, inputs = self.make(), self.inputs(rng)
        loss, gradients = self._step(layer, inputs)
        xla_loss, xla_gradients = self._step(layer, inputs, jit_compile=True)
        np.testing.assert_allclose(xla_loss, loss, rtol=1e-4, atol=1e-5)
        for one, other in zip(xla_gradients, gradients, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)

    @pytest.mark.parametrize("policy", ["mixed_bfloat16", pytest.param("mixed_float16", marks=pytest.mark.slow)])
    def test_mixed_precision_is_finite_and_close(self, rng, policy):
        layer, mixed, inputs = self.make(), self.make(dtype=policy), self.inputs(rng)
        expected = self._real_part(layer, inputs, inputs)
        self.call(mixed, inputs)
        mixed.set_weights(layer.get_weights())
        assert {weight.dtype for weight in mixed.trainable_variables} <= {"float32"}
        for one, other in zip(self._real_part(mixed, inputs, inputs), expected, strict=True):
            assert np.all(np.isfinite(one))
            assert np.abs(one - other).max() <= self.half_tolerance * max(1.0, np.abs(other).max())
        loss, gradients = self._step(mixed, inputs)
        assert np.isfinite(loss)
        assert all(np.all(np.isfinite(gradient)) for gradient in gradients)

    def test_padding_changes_no_real_position(self, rng):
        layer, inputs = self.make(), self.inputs(rng)
        expected = self._real_part(layer, inputs, inputs)
        padded = {name: value if name in self.unpadded else _pad(value, rng) for name, value in inputs.items()}
        _assert_equal(self._real_part(layer, padded, inputs), expected)

    def test_batch_mates_change_no_real_position(self, rng):
        layer, inputs = self.make(), self.inputs(rng)
        first = {name: value[:1] for name, value in inputs.items()}
        alone = self._real_part(layer, first, first)
        _assert_equal(self._real_part(layer, inputs, first), alone)
        with_empty = _add_empty_row(inputs)
        _assert_equal(self._real_part(layer, with_empty, first), alone)
        assert all(np.all(np.isfinite(part)) for part in tf.nest.flatten(self.call(layer, with_empty)))

    def test_empty_row_changes_no_gradient(self, rng):
        layer, inputs = self.make(), self.inputs(rng)
        alone = self._step(layer, inputs)[1]
        together = self._step(layer, _add_empty_row(inputs), reference=inputs)[1]
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)

    def _step(self, layer, inputs, jit_compile=False, reference=None):
        """Returns (loss, gradients) over the rows and positions that are real in `reference`, from a compiled step."""
        self.call(layer, inputs)
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        reference = inputs if reference is None else reference

        @tf.function(jit_compile=jit_compile)
        def step(values):
            with tf.GradientTape() as tape:
                loss = 0.0
                for part in tf.nest.flatten(self.call(layer, values)):
                    part = self._cut(tf.cast(part, tf.float32), reference)
                    # A fixed pattern as the goal: plain sums have gradient 0 behind a layer norm or a softmax.
                    goal = np.cos(np.arange(np.prod(part.shape))).reshape(part.shape)
                    loss += tf.reduce_mean(tf.square(part - goal.astype("float32")))
            return loss, tape.gradient(loss, [variable.value for variable in layer.trainable_variables])

        loss, gradients = step(tensors)
        return loss.numpy(), [None if g is None else tf.convert_to_tensor(g).numpy() for g in gradients]

    def _real_part(self, layer, inputs, reference):
        parts = tf.nest.flatten(self.call(layer, inputs))
        return [self._cut(tf.cast(part, tf.float32), reference).numpy() for part in parts]

    def _cut(self, output, reference):
        """Returns `output` at the rows and positions of `reference`, [real positions, ...] or [rows, ...]."""
        mask = self.real(reference)
        if mask is None:
            return output[: len(next(iter(reference.values())))]
        return tf.gather_nd(output, np.argwhere(mask))


class ModelChecks(LayerChecks):
    """The battery for a model of tokens: inputs hold "targets", outputs are logits."""

    def labels(self, inputs):
        """Returns what `fit` learns: [B, M] ids or [B, 1] class ids."""
        return inputs["targets"]

    @pytest.mark.slow  # compiles a training and an evaluation step for every model
    def test_fit_lowers_the_loss_and_evaluate_reads_it(self, rng):
        model, inputs = self.make(), self.inputs(rng)
        labels = self.labels(inputs)
        model.compile(optimizer=keras.optimizers.Adam(0.01), loss=TokenCrossEntropy(), jit_compile=False)
        losses = model.fit(inputs, labels, batch_size=len(labels), epochs=15, verbose=0).history["loss"]
        assert losses[-1] < losses[0]
        assert model.evaluate(inputs, labels, batch_size=len(labels), verbose=0) < losses[0]


def _pad(value, rng):
    """Appends two positions of padding: id 0, False, or floats that nothing may read."""
    shape = (value.shape[0], 2, *value.shape[2:])
    if value.dtype.kind == "f":
        return np.concatenate([value, 9 * rng.normal(size=shape).astype(value.dtype)], axis=1)
    return np.concatenate([value, np.zeros(shape, value.dtype)], axis=1)


def _add_empty_row(inputs):
    return {name: np.concatenate([value, np.zeros_like(value[:1])]) for name, value in inputs.items()}


def _assert_equal(ours, theirs):
    for one, other in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
        np.testing.assert_allclose(np.array(one), np.array(other), rtol=1e-4, atol=1e-5)
