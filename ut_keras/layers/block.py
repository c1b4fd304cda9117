"""The block: self-attention, cross-attention in a decoder, transition; residuals, dropout and layer norm.

Legend: B batch, L length, S memory length, D hidden size, F filter size, H heads.
"""

import keras
import tensorflow as tf

from ut_keras.layers.attention import MultiHeadAttention
from ut_keras.layers.choices import one_of
from ut_keras.layers.dropout import dropout, fold_seed
from ut_keras.layers.masks import attention_bias, causal_mask
from ut_keras.layers.normalization import LayerNorm
from ut_keras.layers.transition import Transition


@keras.saving.register_keras_serializable("ut_keras")
class Block(keras.layers.Layer):
    """One Transformer block. A recurrence applies the same one at every step.

    Post-norm (the paper, eq. 4-5): x <- norm(x + dropout(f(x))) for each sub-layer f.
    Pre-norm (T2T): x <- x + dropout(f(norm(x))), with one norm after the whole stack, which is the caller's.

    Args:
        num_heads: H.
        filter_size: F.
        cross_attention: whether there is attention to a memory.
        causal: whether a position sees only itself and those before it.
        transition: "fc", "sepconv", or "none": attention alone, for recurrence types with a transition of their own.
        norm: "post" or "pre".
        norm_epsilon: epsilon of the layer norms.
        residual_dropout, attention_dropout, relu_dropout: rates after each sub-layer, on the attention weights
            and inside the transition.
        max_relative_position: > 0 gives self-attention relative positions.
        hard_attention_k: > 1 makes all attention sparse, see `MultiHeadAttention`.
        zero_padding: the fc transition gives 0 at padding (T2T's pad remover; not in decoders).

    Call arguments:
        x: [B, L, D] float.
        padding_mask: [B, L] bool, True at real positions.
        memory: [B, S, D] float, with `cross_attention`; memory_mask: [B, S] bool.
        seed: [2] int32 for the dropouts; None: no dropout.

    Returns:
        [B, L, D].

    Example:

    >>> block = Block(num_heads=2, filter_size=8)
    >>> block(tf.ones([1, 3, 4]), tf.constant([[True, True, False]])).shape.as_list()
    [1, 3, 4]

    Source: paper section 2.1, eq. 4-5; T2T universal_transformer_util.py (attention unit, ffn unit).
    """

    def __init__(
        self,
        num_heads=8,
        filter_size=2048,
        cross_attention=False,
        causal=False,
        transition="fc",
        norm="post",
        norm_epsilon=1e-6,
        residual_dropout=0.0,
        attention_dropout=0.0,
        relu_dropout=0.0,
        max_relative_position=0,
        zero_padding=False,
        hard_attention_k=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        one_of("norm", norm, ("post", "pre"))
        self._arguments = {
            "num_heads": num_heads,
            "filter_size": filter_size,
            "cross_attention": cross_attention,
            "causal": causal,
            "transition": transition,
            "norm": norm,
            "norm_epsilon": norm_epsilon,
            "residual_dropout": residual_dropout,
            "attention_dropout": attention_dropout,
            "relu_dropout": relu_dropout,
            "max_relative_position": max_relative_position,
            "zero_padding": zero_padding,
            "hard_attention_k": hard_attention_k,
        }
        self.causal = causal
        self.zero_padding = zero_padding and not causal
        self.norm = norm
        self.residual_dropout = residual_dropout
        policy = self.dtype_policy

        def make_attention(name, relative=0):
            return MultiHeadAttention(num_heads, attention_dropout, relative, hard_attention_k, name=name, dtype=policy)

        self.self_attention = make_attention("self_attention", max_relative_position)
        self.encdec_attention = make_attention("encdec_attention") if cross_attention else None
        self.ffn = None
        if transition != "none":
            zeroes = self.zero_padding
            self.ffn = Transition(filter_size, transition, causal, relu_dropout, zeroes, name="ffn", dtype=policy)
        names = [f"{layer.name}_norm" for layer in self.sublayers]
        self.norms = [LayerNorm(norm_epsilon, name=name, dtype=policy) for name in names]

    @property
    def sublayers(self):
        """The sub-layers that there are, in their order."""
        return [layer for layer in (self.self_attention, self.encdec_attention, self.ffn) if layer is not None]

    @property
    def pointwise(self):
        """Whether nothing but attention reads other positions."""
        return self.ffn is None or self.ffn.kind == "fc"

    def recent_inputs(self):
        """Returns {name: (positions, channels)} of what a cache keeps of earlier positions beside keys and values."""
        return {} if self.ffn is None else self.ffn.recent_inputs()

    def build(self, shape):
        shape = (None, None, shape[-1])
        for layer in (*self.sublayers, *self.norms):
            layer.build(shape)
        self.built = True

    def prepare(self, padding_mask, memory=None, memory_mask=None):
        """Returns what no step changes: weights as tensors, attention biases, the memory's keys and values."""
        attention = self.self_attention.prepare(tf.shape(padding_mask)[1], attention_mask=self._visible(padding_mask))
        context = self._prepare(attention, memory, memory_mask)
        # A decoder's convolutions look back only, so what is behind the end cannot reach a real position.
        return context if self.causal else {**context, "mask": padding_mask}

    def prepare_apart(self, padding_mask=None, memory=None, memory_mask=None):
        """Returns the same for packed rows, and without `padding_mask` for a cache, as far as no position matters."""
        attention = self.self_attention.prepare_apart()
        if padding_mask is not None:
            attention = attention._replace(bias=attention_bias(self._visible(padding_mask), self.compute_dtype))
        return self._prepare(attention, memory, memory_mask)

    def _visible(self, padding_mask):
        """Returns which keys each query may see, [1, L, L] or [B, 1, L] bool."""
        return causal_mask(tf.shape(padding_mask)[1]) if self.causal else padding_mask[:, None, :]

    def _prepare(self, attention, memory, memory_mask):
        context = {
            "self": attention,
            "ffn": [] if self.ffn is None else self.ffn.prepare(),
            "norms": [norm.prepare() for norm in self.norms],
            "mask": None,
        }
        if self.encdec_attention is not None:
            context["encdec"] = self.encdec_attention.prepare(memory=memory, memory_mask=memory_mask)
        return context

    def at(self, context, places):
        """Returns a context for a cache at some `cache.Places`."""
        return {**context, "self": self.self_attention.at(context["self"], places)}

    def apply(self, x, context, seed=None, view=None, active=None, watch=None, moving=None):
        """Returns the block's output [B, L, D] for x [B, L, D] under a prepared context.

        Args:
            x: [B, L, D]; the positions that are new, with `view`; packed rows, with `active`.
            context: what `prepare`, or `prepare_apart` and `at`, returned.
            seed: [2] int32 for the dropouts, or None.
            view: `cache.CacheView` of the positions before.
            active: `packing.Active`, the rows to refine; only these come back.
            watch: {"self_attention": [], "encdec_attention": []}, which take the attention weights, or None.
            moving: `packing.PackedRows` of x, the rows that go through the transition; None: all.
        """
        watch = watch or {}

        def attend(y, seed):
            return self.self_attention.attend(y, context["self"], seed, view, active, watch.get("self_attention"))

        def attend_to_memory(y, seed):
            weights = watch.get("encdec_attention")
            return self.encdec_attention.attend(y, context["encdec"], seed, None, active, weights)

        def refine(y, seed):
            if moving is None:
                return self.ffn.transform(y, context["ffn"], context["mask"], seed, view)
            return moving.restore(self.ffn.transform(moving.pack(y), context["ffn"]), 0.0)

        calls = {"self_attention": attend, "encdec_attention": attend_to_memory, "ffn": refine}
        sublayers = [calls[layer.name] for layer in self.sublayers]
        for place, (sublayer, norm, weights) in enumerate(zip(sublayers, self.norms, context["norms"], strict=True)):
            y = sublayer(norm.normalize(x, weights) if self.norm == "pre" else x, fold_seed(seed, 2 * place))
            if place == 0 and active is not None:
                x = active.chosen(x)
            x += dropout(y, self.residual_dropout, fold_seed(seed, 2 * place + 1))
            if self.norm == "post":
                x = norm.normalize(x, weights)
        return x

    def remember(self, x, context, view):
        """Writes what later positions read of x [B, K*Q, D] into a cache, for positions whose state stays as it is."""
        y = self.norms[0].normalize(x, context["norms"][0]) if self.norm == "pre" else x
        self.self_attention.remember(y, context["self"], view)

    def call(self, x, padding_mask, memory=None, memory_mask=None, seed=None):
        return self.apply(x, self.prepare(padding_mask, memory, memory_mask), seed)

    def get_config(self):
        return {**super().get_config(), **self._arguments}
