"""What tensor2tensor leaves in its output directory: a TensorFlow 1 checkpoint, hparams.json, a vocabulary file."""

import json

import numpy as np
import tensorflow as tf

from problems.t2t_subwords import ESCAPES

SHARDS = 16
OTHERS = {  # of T2T's hyperparameters: what we have not, and what only has to have its usual value
    "moe_k": 2,
    "eval_drop_long_sequences": False,
    "prepend_mode": "none",
    "vocab_divisor": 1,
    "num_area_layers": 0,
    "optimizer": "adam",
    "optimizer_adam_beta1": 0.9,
    "optimizer_adam_beta2": 0.997,
    "optimizer_adam_epsilon": 1e-9,
    "label_smoothing": 0.1,
    "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
    "learning_rate_constant": 0.1,
    "learning_rate_warmup_steps": 4,
    "layer_prepostprocess_dropout": 0.2,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "shared_embedding_and_softmax_weights": 1,
}


def in_shards(arrays, count=SHARDS):
    """Returns `arrays` with each table .../weights_0 in row shards, the first of them longer, as T2T has them."""
    found = {}
    for name, array in arrays.items():
        parts = np.array_split(array, count) if name.endswith("/weights_0") else None
        found |= {f"{name[:-1]}{index}": part for index, part in enumerate(parts)} if parts else {name: array}
    return found


def save(prefix, variables):
    """Writes {name: array} in the format of TensorFlow 1's Saver and returns the checkpoint's path."""
    names, tensors = list(variables), [tf.constant(value) for value in variables.values()]
    # The operation behind that class; a session takes seconds for as many variables.
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
    return str(prefix)


def write(path, golden, step=7, moments=None, hparams=None, shards=SHARDS, weights=None):
    """Writes the output directory of a golden model's training and returns the checkpoint's path.

    Args:
        path: the directory to be.
        golden: `GoldenFile` of a model with 17 ids.
        step: updates made.
        moments: {"Adam": [m, v]} or the like, each {name: array}; Adam's are zeros without it.
        hparams: {name: value}, beside and above the model's own.
        weights: instead of the golden file's.
    """
    path.mkdir(parents=True)
    whole = dict(weights or golden.under("w"))
    weights = in_shards(whole, shards)
    zeros = {name: np.zeros_like(value) for name, value in whole.items()}
    slots = {}
    for optimizer, parts in ({"Adam": [zeros, zeros]} if moments is None else moments).items():
        for number, part in enumerate(parts):
            suffix = f"{optimizer}_{number}" if number else optimizer
            slots |= {f"training/{name}/{suffix}": value for name, value in in_shards(part, shards).items()}
    others = {"global_step": np.int64(step), "training/beta1_power": np.float32(0.5), "losses_avg/x": np.float32(3.0)}
    prefix = save(path / f"model.ckpt-{step}", {**weights, **slots, **others})
    meta = golden.meta
    values = {**OTHERS, **meta["effective"], **meta["hp"], "hidden_size": meta["d"], "filter_size": meta["filter"]}
    values |= {"num_heads": meta["heads"], **(hparams or {})}
    (path / "hparams.json").write_text(json.dumps(values))
    return prefix


def vocabulary(path, *entries):
    """Writes a vocabulary of subwords: 16 ids for the escape characters and the reserved ones, then `entries`."""
    lines = ["<pad>_", "<EOS>_", *ESCAPES, *entries]
    path.write_text("".join(f"'{line}'\n" for line in lines))
    return path


def pairs(folder, count=12):
    """Writes pairs of texts of digits, and of the letter a."""
    folder.mkdir(parents=True)
    for split, size in (("train", count), ("dev", 4), ("test", 4)):
        numbers = [f"{7 * index} a{index}" for index in range(size)]
        (folder / f"{split}.en").write_text("".join(f"{number}\n" for number in numbers))
        (folder / f"{split}.de").write_text("".join(f"{number[::-1]}\n" for number in numbers))
    return folder
