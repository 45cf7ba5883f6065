"""Command line arguments of the fetch step, set in a run file as `code.arguments`."""

from slipway_trainer.options import Option, Options, Text

#: Files that are transferred at the same time; each is on the disk of this machine until it is stored.
AT_ONCE = 4


def options(*others: Option) -> Options:
    """The options of the fetch step, and others."""
    own = (
        Option("source", Text(), "", "hf:ORG/NAME[@REVISION] or hf:datasets/ORG/NAME[@REVISION]; several are separated by commas"),
        Option("revisions", Text(), "", "names of the commits in source, in its order: the branches or tags by which runs find them"),
        Option("include", Text(), "", "patterns of file names, separated by commas; default: the files that training reads"),
    )
    return Options("builtin-fetch", __doc__, (*own, *others))
