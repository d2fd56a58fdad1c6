"""The errors of this package. Each message says what is wrong, where, and what to do."""


class AegisError(Exception):
    """What all errors of this package are. By itself: the program `aegis` could not do its work."""


class BinaryMissing(AegisError):
    """There is no program `aegis`; the message says what to do."""


class AlreadyRecorded(AegisError):
    """There is a recording of that name, and nothing said that it may be replaced."""


class NotARun(AegisError):
    """The directory holds no recorded run."""


class Corrupt(AegisError):
    """A file of a recording or a data set is damaged."""


class FutureFormat(AegisError):
    """A newer version of Aegis wrote the file."""


class PackageMissing(AegisError):
    """What was asked for needs an optional package; the message says which."""
