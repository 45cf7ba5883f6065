"""The Ray launcher: a cluster over all hosts of a job, and the entry point on the first."""
