"""A small file of the layout of Linzen's, with sentences of a toy grammar."""

import csv
import gzip
import io
import itertools

HEADER = (
    "sentence orig_sentence pos_sentence subj verb subj_pos has_rel has_nsubj verb_pos subj_index verb_index "
    "n_intervening last_intervening n_diff_intervening distance max_depth all_nouns nouns_up_to_verb"
).split()
_NOUNS = {"key": "keys", "cabinet": "cabinets", "ratio": "ratios", "sign": "signs"}
_VERBS = {"is": "are", "has": "have", "seems": "seem", "carries": "carry", "VBZ": "VBP"}


def rows():
    """Returns 336 rows, each of HEADER: 0 to 2 nouns between subject and verb, of any number."""
    found = []
    for singular, (noun, other), verb in itertools.product((True, False), itertools.permutations(_NOUNS, 2), _VERBS):
        for numbers in ((), (True,), (False,), (True, False), (False, False)):
            found.append(_row(singular, noun, other, verb, numbers))
    # Every fourth combination with two nouns is left out, to have an uneven number of examples.
    return [row for index, row in enumerate(found) if index % 5 < 3 or index % 4]


def _row(singular, noun, other, verb, numbers):
    """numbers: for each noun between subject and verb, whether it is singular."""
    subject = noun if singular else _NOUNS[noun]
    between = [other if number else _NOUNS[other] for number in numbers]
    words = ["the", subject, *(word for name in between for word in ("of", "the", name))]
    form = verb if singular else _VERBS[verb]
    attractors = sum(number != singular for number in numbers)
    sentence = " ".join([*words, form, "``", "good", '"', "."])
    position, tag = len(words) + 1, "NN" if singular else "NNS"
    values = [sentence, sentence, "x", subject, form, tag, False, False, "VBZ" if singular else "VBP", 2, position]
    return [*values, len(numbers), "na", attractors, position - 2, 0, "", ""]


def tsv_bytes(table, header=HEADER, compressed=True):
    """Returns the bytes of the file: a header and `table`, as Python's csv module writes them."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t").writerows([header, *table])
    data = text.getvalue().encode()
    return gzip.compress(data, mtime=0) if compressed else data


def write_tsv(folder, table=None):
    """Writes the official file into `folder` and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agr_50_mostcommon_10K.tsv.gz").write_bytes(tsv_bytes(rows() if table is None else table))
    return folder
