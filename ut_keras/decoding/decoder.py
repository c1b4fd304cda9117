"""What a search knows of a model: a decoder that is fed one id after the other.

Legend: B rows, K hypotheses of a row, P prefix length, V vocabulary size.
"""

PAD = 0
EOS = 1


class Decoder:
    """Base of the decoders: it predicts the id at a position from the ids before it, for K hypotheses of each row.

    A search calls `start` once, then in turns `step` and, where hypotheses change places, `reorder`; between positions
    now and then `select` and `grow`. All of it is traced into one graph or runs eagerly. A state is a nest of tensors,
    which the decoder alone looks into. What belongs to a row (the memory of its inputs) is kept once, not once for each
    hypothesis.

    A hypothesis's numbers depend on its own row and ids alone.
    """

    def start(self, prefix, beams, capacity):
        """Reads what all rows begin with.

        Args:
            prefix: [B, P] int32, real ids; P may be 0.
            beams: K, Python int.
            capacity: scalar int32, positions there must be room for; at least P.

        Returns:
            (state before position P, ponder times [B, P] float32 of the positions before it).
        """
        raise NotImplementedError

    def step(self, state, ids, position):
        """Predicts the ids at one position.

        Args:
            state: of the positions before.
            ids: [B, K] int32, the ids before `position`; 0 at position 0. Behind it, 0 is of a hypothesis that does not
                run (its row has ended, or a beam is not full yet): nobody looks at its logits.
            position: scalar int32, below the capacity.

        Returns:
            (logits [B, K, V] float32, ponder times [B, K] float32 of this position, state).
        """
        raise NotImplementedError

    def reorder(self, state, parents):
        """Returns the state in which hypothesis k of row b goes on from hypothesis parents[b, k] ([B, K] int32)."""
        raise NotImplementedError

    def select(self, state, rows):
        """Returns the state of these rows ([b] int32) alone, in this order."""
        raise NotImplementedError

    def grow(self, state, capacity):
        """Returns the state with room for positions below `capacity` (scalar int32), which is larger than before."""
        raise NotImplementedError

    def invariants(self, state):
        """Returns a nest of `tf.TensorShape` as `state`, in which rows and capacity are None."""
        raise NotImplementedError
