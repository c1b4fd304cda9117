"""Times functions side by side: on a shared machine only ratios within one run can be trusted."""

import statistics
import time


def interleaved(functions, rounds, warmup=3):
    """Calls the functions in turn, `rounds` times each, and returns {name: [seconds]}.

    The order turns round from round to round, so that none always runs in another's wake.

    Args:
        functions: {name: function without arguments that returns when its work is done}.
        rounds: measured calls of each.
        warmup: calls of each before that, for tracing and caches.
    """
    for function in functions.values():
        for _ in range(warmup):
            function()
    seconds = {name: [] for name in functions}
    for number in range(rounds):
        order = list(functions)[:: -1 if number % 2 else 1]
        for name in order:
            start = time.perf_counter()
            functions[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def median_ratio(seconds, one, other):
    """Returns the median over rounds of `one`'s time divided by `other`'s of the same round."""
    return statistics.median(a / b for a, b in zip(seconds[one], seconds[other], strict=True))


def median_ms(seconds, name):
    """Returns the median time in milliseconds."""
    return round(1000 * statistics.median(seconds[name]), 2)
