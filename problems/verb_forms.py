"""Singular and plural forms of English present-tense verbs. Standard library only.

The regular endings and six irregular pairs; nothing here knows whether a spelling is a word, so `other_form` is
handed the words that exist. The part-of-speech tags VBZ and VBP, which stand for rare verbs in Linzen's file,
are a pair like any other.
"""

SINGULAR = "VBZ"
PLURAL = "VBP"

_IRREGULAR = (
    ("is", "are"),
    ("was", "were"),
    ("has", "have"),
    ("does", "do"),
    ("goes", "go"),
    (SINGULAR, PLURAL),
)
_TO_PLURAL = dict(_IRREGULAR)
_TO_SINGULAR = {plural: singular for singular, plural in _IRREGULAR}
_HISSING = ("s", "x", "z", "ch", "sh", "o")
_VOWELS = "aeiou"


def singular_of(plural):
    """Returns the third person singular of a verb's plural (base) form.

    >>> [singular_of(verb) for verb in ("are", "carry", "play", "pass", "use")]
    ['is', 'carries', 'plays', 'passes', 'uses']
    """
    if plural in _TO_SINGULAR:
        return _TO_SINGULAR[plural]
    if plural.endswith("y") and plural[-2:-1] not in ("", *_VOWELS):
        return plural[:-1] + "ies"
    return plural + ("es" if plural.endswith(_HISSING) else "s")


def plural_candidates(singular):
    """Returns the spellings whose `singular_of` is `singular`, likeliest first; [] if it has no such form.

    >>> plural_candidates("uses"), plural_candidates("carries"), plural_candidates("has"), plural_candidates("walk")
    (['use', 'us'], ['carrie', 'carry'], ['have'], [])
    """
    if singular in _TO_PLURAL:
        return [_TO_PLURAL[singular]]
    guesses = [
        singular[: -len(ending)] + new
        for ending, new in (("s", ""), ("es", ""), ("ies", "y"))
        if singular.endswith(ending)
    ]
    return [guess for guess in guesses if len(guess) > 1 and singular_of(guess) == singular]


def other_form(verb, number, verbs, words):
    """Returns the form of the other number, or None where no known word is one.

    Args:
        verb: a form as it stands in a text.
        number: its number, SINGULAR or PLURAL.
        verbs: container of the words seen as verbs of the other number; these win.
        words: container of all known words.
    """
    candidates = [singular_of(verb)] if number == PLURAL else plural_candidates(verb)
    for known in (verbs, words):
        for candidate in candidates:
            if candidate in known:
                return candidate
    return None


def number_of(form, other):
    """Returns SINGULAR or PLURAL for `form` of a pair of forms of one verb; None where the pair does not say.

    >>> number_of("is", "are"), number_of("were", "is"), number_of("tries", "try"), number_of("lie", "lie")
    ('VBZ', 'VBP', 'VBZ', None)
    """
    for singular, plural, answer in ((form, other, SINGULAR), (other, form, PLURAL)):
        if singular in _TO_PLURAL and plural in _TO_SINGULAR or singular_of(plural) == singular:
            return answer
    return None
