"""Subwords: a SentencePiece model that gives back every text that it encoded.

Byte-pair encoding with byte fallback, so that no character is unknown; text is not normalised and blanks
are kept; pad 0, end 1, unknown 2 (never produced), no beginning of a sentence. SentencePiece itself would return
U+2581, its own sign for a blank, as a blank: that character is spelled by its three bytes.
"""

import base64
import functools
import io

from problems.vocabulary import EOS, PAD, UNK, Vocabulary, before_end
from ut_keras.errors import UserError

BLANK_SIGN = "\u2581"
_MOST_LINES = 2_000_000  # of the text that a model is trained on: the first ones
_LONGEST_PART = 1 << 18  # characters, at most 1 MiB; SentencePiece is shown longer lines in parts
_NOT_SHOWN = str.maketrans("\0\u2585", "  ")  # for these SentencePiece would leave out the whole line
_COVERAGE = 0.9999  # share of the text whose characters have pieces of their own; the others are bytes


class SubwordVocabulary(Vocabulary):
    """Pieces of words.

    Args:
        model: the serialised SentencePiece model, bytes.

    Attributes:
        model: the same.

    Raises:
        UserError: not a SentencePiece model, one without byte fallback or without a piece for a blank, or other ids
            than pad 0, end 1, unknown 2.
    """

    kind = "subwords"

    def __init__(self, model):
        self.model = bytes(model)
        processor = self._processor
        ids = (processor.pad_id(), processor.eos_id(), processor.unk_id())
        if ids != (PAD, EOS, UNK) or processor.bos_id() != -1:
            raise UserError(
                f"the SentencePiece model has pad, end, unknown ids {ids}; they have to be (0, 1, 2), no bos"
            )
        self.blank_sign_ids = tuple(processor.piece_to_id(f"<0x{byte:02X}>") for byte in BLANK_SIGN.encode())
        if UNK in self.blank_sign_ids:
            raise UserError("the SentencePiece model has no byte fallback; train it with byte_fallback=true")
        if not _has_blank(processor):
            # A blank would be spelled by the bytes of U+2581, and come back as that.
            raise UserError("the SentencePiece model has no piece for a blank; train it with required_chars=U+2581")

    @functools.cached_property
    def _processor(self):
        try:
            return _processor(self.model)
        except RuntimeError:
            raise UserError("not a SentencePiece model") from None

    @classmethod
    def train(cls, lines, size, task="subwords"):
        """Returns the vocabulary of `size` pieces that fits `lines` (strings); fewer where the text has not so many.

        Raises:
            UserError: there is no text, or `size` does not hold the reserved ids, 256 bytes and the characters.
        """
        lines = list(lines)
        try:
            model = _train(lines, size)
            if not _has_blank(_processor(model)):
                model = _train(lines, size, required_chars=BLANK_SIGN)
        except RuntimeError as error:
            text = " ".join(str(error).split())
            if "vocab" in text.lower():
                raise UserError(f"{task}: vocabulary_size={size} is too small for its characters; raise it") from None
            raise UserError(f"{task}: there is no text to make subwords of ({text[:120]})") from None
        return cls(model)

    @property
    def size(self):
        return self._processor.get_piece_size()

    @property
    def entries(self):
        """The pieces in the order of their ids from 3 on."""
        return tuple(self._processor.id_to_piece(number) for number in range(UNK + 1, self.size))

    def __eq__(self, other):
        return type(self) is type(other) and self.model == other.model

    def __hash__(self):
        return hash(self.model)

    def __contains__(self, piece):
        return self._processor.piece_to_id(piece) > UNK

    def id_of(self, piece):
        if piece not in self:
            raise KeyError(piece)
        return self._processor.piece_to_id(piece)

    def encode(self, text, task=None):
        """Returns the ids of the pieces of `text`, without an end token. No text is refused."""
        return self.encode_all([text])[0]

    def encode_all(self, texts):
        """Returns the ids of each of `texts`."""
        encoded = self._processor.encode(list(texts))
        for index, text in enumerate(texts):
            if BLANK_SIGN in text:
                parts = [self._processor.encode(part) for part in text.split(BLANK_SIGN)]
                encoded[index] = parts[0] + [n for part in parts[1:] for n in (*self.blank_sign_ids, *part)]
        return encoded

    def decode(self, ids):
        """Returns the text of `ids` up to the end token; padding and ids without a piece are left out."""
        return self._processor.decode([number for number in before_end(ids) if UNK < number < self.size])

    def decode_tokens(self, ids):
        """Returns the pieces of `ids` up to the end token, as they are spelled in the model (a blank is U+2581)."""
        return [self._processor.id_to_piece(number) for number in before_end(ids) if UNK < number < self.size]

    def to_dict(self):
        return {"kind": self.kind, "model": base64.b64encode(self.model).decode("ascii")}

    @classmethod
    def _from_dict(cls, values):
        return cls(base64.b64decode(values["model"]))


def _train(lines, size, **options):
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_parts(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        hard_vocab_limit=False,
        byte_fallback=True,
        pad_id=PAD,
        eos_id=EOS,
        unk_id=UNK,
        bos_id=-1,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        character_coverage=_COVERAGE,
        max_sentence_length=4 * _LONGEST_PART,
        input_sentence_size=_MOST_LINES,
        shuffle_input_sentence=False,
        minloglevel=3,
        **options,
    )
    return model.getvalue()


def _processor(model):
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_proto=model)


def _has_blank(processor):
    return processor.piece_to_id(BLANK_SIGN) != UNK


def _parts(lines):
    for line in lines:
        for start in range(0, len(line), _LONGEST_PART):
            yield line[start : start + _LONGEST_PART].translate(_NOT_SHOWN)
