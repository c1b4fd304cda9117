"""The one check of an argument that is a choice among names. Standard library only."""


def one_of(name, value, choices):
    """Returns `value`; ValueError that names the argument and its choices if it is none of them."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(str(choice) for choice in choices)}")
    return value
