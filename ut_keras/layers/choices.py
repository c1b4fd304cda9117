"""The checks of arguments that are choices among names. Standard library only."""


def one_of(name, value, choices):
    """Returns `value`; ValueError that names the argument and its choices if it is none of them."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(str(choice) for choice in choices)}")
    return value


def each_once(given, choices):
    """Returns whether `given` names one or more of the choices, and none of them twice."""
    return 0 < len(given) == len(set(given) & set(choices))
