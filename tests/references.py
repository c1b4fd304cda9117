"""What the layers compute, written a second time: plain loops over float64 numbers, from the formulas.

One sequence at a time, without padding. Legend: L length, S memory length, D hidden size, F filter size,
H heads, E = D/H, T steps.
"""

import math

import numpy as np


def sinusoids(positions, channels, layout):
    """[len(positions), channels]: the paper's eq. 6-7 (interleaved, first position 1), or T2T's halves from 0."""
    rows = np.zeros([len(positions), channels])
    half = channels // 2
    for row, position in zip(rows, positions):
        if layout == "paper":
            for channel in range(channels):
                angle = (position + 1) / 10000 ** (2 * (channel // 2) / channels)
                row[channel] = math.cos(angle) if channel % 2 else math.sin(angle)
        else:
            for j in range(half):
                angle = position / 10000 ** (j / max(half - 1, 1))
                row[j], row[half + j] = math.sin(angle), math.cos(angle)
    return rows


def layer_norm(x, scale, bias, epsilon=1e-6):
    """[L, D] -> [L, D]: each row to mean 0 and (biased) variance 1, then scale and bias."""
    out = np.zeros_like(x, dtype=float)
    for row, values in zip(out, np.asarray(x, float)):
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / len(values)
        row[:] = [(value - mean) / math.sqrt(variance + epsilon) for value in values]
    return out * scale + bias


def attention(x, memory, kernels, num_heads, visible, relative=None, change=None):
    """Multi-head attention of x [L, D] to memory [S, D].

    kernels: (queries, keys, values, output), each [D, D]. visible: [L, S] bool. relative: tables of keys and
    values [2R + 1, E], indexed by the clipped distance from query to key. change: what becomes of a query's weights
    over the keys that it sees, [keys] -> [keys].
    """
    queries, keys, values = (np.asarray(a, float) @ kernel for a, kernel in zip((x, memory, memory), kernels))
    size = queries.shape[1] // num_heads
    mixed = np.zeros_like(queries)
    for head in range(num_heads):
        part = slice(head * size, (head + 1) * size)
        for i in range(len(x)):
            seen = [j for j in range(len(memory)) if visible[i, j]]
            added = {j: (0.0, 0.0) if relative is None else _relative(i, j, relative) for j in seen}
            logits = [queries[i, part] @ (keys[j, part] + added[j][0]) / math.sqrt(size) for j in seen]
            exponents = [math.exp(logit - max(logits)) for logit in logits]
            weights = np.array(exponents) / sum(exponents)
            for j, weight in zip(seen, weights if change is None else change(weights)):
                mixed[i, part] += weight * (values[j, part] + added[j][1])
    return mixed @ kernels[3]


def _relative(i, j, tables):
    limit = (len(tables[0]) - 1) // 2
    row = min(max(j - i, -limit), limit) + limit
    return tables[0][row], tables[1][row]


def fully_connected(x, weights):
    """relu(x W1 + b1) W2 + b2 of x [L, D]; weights: (W1 [D, F], b1, W2 [F, D], b2)."""
    kernel1, bias1, kernel2, bias2 = weights
    return np.maximum(x @ kernel1 + bias1, 0) @ kernel2 + bias2


def separable_convolutions(x, weights, causal):
    """Two separable convolutions, relu between; weights: those of `fully_connected`, depthwise [3, D] and [5, F]."""
    kernel1, bias1, kernel2, bias2, depthwise1, depthwise2 = weights
    inner = np.maximum(_depthwise(x, depthwise1, causal) @ kernel1 + bias1, 0)
    return _depthwise(inner, depthwise2, causal) @ kernel2 + bias2


def _depthwise(x, kernel, causal):
    width = len(kernel)
    first = width - 1 if causal else width // 2
    out = np.zeros_like(x, dtype=float)
    for i in range(len(x)):
        for shift in range(width):
            if 0 <= i + shift - first < len(x):
                out[i] += x[i + shift - first] * kernel[shift]
    return out


def block(x, layer, memory=None):
    """One `Block` (a built layer, whose weights and options are read) applied to x [L, D], memory [S, D]."""
    options = layer.get_config()
    length = len(x)
    causal = np.tril(np.ones([length, length], bool)) if options["causal"] else np.ones([length, length], bool)

    def attend(to, own):
        kernels = [_array(getattr(to, f"_{name}")) for name in ("q", "k", "v", "output_transform")]
        relative = None
        if to.max_relative_position:
            relative = (_array(to._relative_keys), _array(to._relative_values))
        return lambda y: attention(
            y,
            y if own else memory,
            kernels,
            options["num_heads"],
            causal if own else np.ones([length, len(memory)], bool),
            relative,
        )

    sublayers = [attend(layer.self_attention, True)]
    if options["cross_attention"]:
        sublayers.append(attend(layer.encdec_attention, False))
    if options["transition"] != "none":
        weights = [_array(getattr(layer.ffn, f"_{name}")) for name in ("kernel1", "bias1", "kernel2", "bias2")]
        depthwise = [_array(weight) for weight in layer.ffn._depthwise]
        if depthwise:
            sublayers.append(lambda y: separable_convolutions(y, weights + depthwise, options["causal"]))
        else:
            sublayers.append(lambda y: fully_connected(y, weights))
    x = np.asarray(x, float)
    for sublayer, norm in zip(sublayers, layer.norms, strict=True):
        scale, bias = _array(norm.scale), _array(norm.bias)
        if options["norm"] == "post":
            x = layer_norm(x + sublayer(x), scale, bias, options["norm_epsilon"])
        else:
            x = x + sublayer(layer_norm(x, scale, bias, options["norm_epsilon"]))
    return x


def _array(variable):
    return variable.numpy().astype(float)


def act_weights(probabilities, max_steps, threshold, pays):
    """Output weights, steps and remainder of one position (Graves 2016, section 2; paper, appendix C).

    probabilities: of steps 0, 1, ...; the last one repeats. pays: the remainder is paid at the step limit.
    Returns (weights of the steps taken, number of steps, remainder or 0).
    """
    total, weights = 0.0, []
    for step in range(max_steps):
        p = probabilities[min(step, len(probabilities) - 1)]
        if total + p >= threshold or (pays and step == max_steps - 1):
            return [*weights, 1 - total], len(weights) + 1, 1 - total
        total += p
        weights.append(p)
    return weights, len(weights), 0.0


def recurrence(x, transform, signal, probability, max_steps, form, threshold=0.99, pays=True):
    """ACT over one sequence x [L, D], as the table of `AdaptiveComputationTime` says it.

    transform: [L, D] -> [L, D], the blocks. signal: (state, step) -> state with its signals. probability:
    (state with signals, step) -> [L]. pays: `accumulated` and `frozen` pay the remainder at the limit.
    Returns {"output", "ponder_times", "remainders", "steps", "pre_states", "states", "weights"}.
    """
    length = len(x)
    state, output = np.array(x, float), np.zeros(np.shape(x))
    total, remainders, times = np.zeros(length), np.zeros(length), np.zeros(length)
    seen = {"pre_states": [], "states": [], "weights": []}
    weighted_sum = form in ("accumulated", "frozen")
    for step in range(max_steps):
        if all(value >= threshold for value in total):
            break
        pre_state = signal(state, step)
        p = probability(pre_state, step)
        new = transform(pre_state)
        weights = np.zeros(length)
        after = new.copy()
        for i in range(length):
            if total[i] >= 1:
                if form == "frozen":
                    after[i] = state[i]
            else:
                times[i] += 1
                if total[i] + p[i] >= threshold or (weighted_sum and pays and step == max_steps - 1):
                    weights[i] = remainders[i] = 1 - total[i]
                    total[i] = 1
                else:
                    weights[i] = p[i]
                    total[i] += p[i]
            output[i] = output[i] * (1 if weighted_sum else 1 - weights[i]) + weights[i] * new[i]
        state = after
        for name, value in (("pre_states", pre_state), ("states", new), ("weights", weights)):
            seen[name].append(value)
    seen = {name: np.array(values) for name, values in seen.items()}
    return {"output": output, "ponder_times": times, "remainders": remainders, "steps": len(seen["weights"]), **seen}
