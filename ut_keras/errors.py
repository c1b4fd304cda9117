"""The errors a user can cause. The program prints their one line and exits with their code."""


class UserError(ValueError):
    """Something outside of the program is wrong: a file, a directory, a piece of data."""

    exit_code = 1


class UsageError(UserError):
    """A name or a value on the command line (or in a call) is wrong."""

    exit_code = 2
