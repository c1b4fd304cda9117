"""The recurrence types, written a second time over float64 numbers, from their formulas.

One sequence at a time, without padding or halting. Legend: L length, D hidden size, T steps.
"""

import numpy as np

from tests import references


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def states(kind, layer, x, refine):
    """The state after each step, [T, L, D], and what the recurrence gives at last, [L, D].

    kind: the type's name. layer: its built `RecurrenceType`, whose weights and options are read. x: [L, D].
    refine: (state [L, D], step) -> [L, D], the signals and the blocks.
    """
    x = np.asarray(x, float)
    return _TYPES[kind](layer, x, refine)


def _weights(gates, name):
    return [[_array(weight) for weight in pair] for pair in gates.variables_of(name)]


def _array(variable):
    return variable.numpy().astype(float)


def _dense(inputs, layers):
    """Dense layers over states side by side, relu between them."""
    y = np.concatenate(inputs, axis=-1)
    for number, (kernel, bias) in enumerate(layers):
        y = (np.maximum(y, 0) if number else y) @ kernel + bias
    return y


def _norm(layer, index, x):
    if not layer.norms:
        return x
    return references.layer_norm(x, _array(layer.norms[index].scale), _array(layer.norms[index].bias))


def _basic(layer, x, refine, steps):
    seen = [x]
    for step in range(steps):
        seen.append(refine(seen[-1], step))
    return seen[1:], seen[-1]


def _gated(carries_inputs):
    def run(layer, x, refine, steps):
        state, seen = x, []
        for step in range(steps):
            new = refine(state, step)
            by_letter = {"s": state, "t": new, "i": x}
            inputs = [_norm(layer, index, by_letter[letter]) for index, letter in enumerate(layer._letters)]
            transform = sigmoid(_dense(inputs, _weights(layer.gates, "transform")))
            own = "carry" in layer.gates.biases
            carry = sigmoid(_dense(inputs, _weights(layer.gates, "carry"))) if own else 1 - transform
            state = (x if carries_inputs else state) * carry + new * transform
            seen.append(state)
        return seen, state

    return run


def _depthwise(layer, x, refine, steps):
    kernel, bias = _array(layer._kernel), _array(layer._bias)
    table = 0 * x[:1] + np.zeros([steps + 1, x.shape[-1]])
    if layer._table is not None:
        table = _array(layer._table)[: steps + 1] * np.sqrt(x.shape[-1])
    memory, seen = [x], []
    for step in range(steps):
        slots = np.array([state + table[index] for index, state in enumerate(memory)])
        weights = np.exp(slots @ kernel + bias)
        if layer.over_channels:
            slots, weights = slots[:-1], weights[:-1]
            weights = weights / weights.sum(axis=-1, keepdims=True)
        else:
            weights = weights / weights.sum(axis=0)
        state = refine((slots * weights).sum(axis=0), step)
        memory.append(state)
        seen.append(state)
    return seen, seen[-1]


def _rnn(layer, x, refine, steps):
    state, seen = x, []
    for step in range(steps):
        entering = _norm(layer, 0, refine(state, step))
        state = _norm(layer, 1, np.tanh(_dense([entering, state], _weights(layer._gates, "state"))))
        seen.append(state)
    return seen, state


def _gru(layer, x, refine, steps):
    state, seen = x, []
    for step in range(steps):
        entering = _norm(layer, 0, refine(state, step))
        update = sigmoid(_dense([entering, state], _weights(layer._gates, "update")))
        reset = sigmoid(_dense([entering, state], _weights(layer._gates, "reset")))
        candidate = np.tanh(_dense([entering, reset * state], _weights(layer._candidate, "candidate")))
        before = state if layer.gru_mixes == "state" else entering
        state = _norm(layer, 1, (1 - update) * before + update * candidate)
        seen.append(state)
    return seen, state


def _lstm(layer, x, refine, steps):
    state, memory, seen = x, np.zeros_like(x), []
    for step in range(steps):
        both = [_norm(layer, 0, refine(state, step)), state]
        names = ("input", "forget", "output", "input_modulation")
        entering, forget, leaving, change = (_dense(both, _weights(layer._gates, name)) for name in names)
        memory = memory * sigmoid(forget + layer.lstm_forget_bias) + sigmoid(entering) * np.tanh(change)
        state = _norm(layer, 1, np.tanh(memory) * sigmoid(leaving))
        seen.append(state)
    return seen, memory if layer.use_memory_as_final_state else state


def _with_depth(run):
    return lambda layer, x, refine: run(layer, x, refine, layer.max_steps)


_TYPES = {
    "basic": _with_depth(_basic),
    "highway": _with_depth(_gated(False)),
    "skip": _with_depth(_gated(True)),
    "dwa": _with_depth(_depthwise),
    "rnn": _with_depth(_rnn),
    "gru": _with_depth(_gru),
    "lstm": _with_depth(_lstm),
}
