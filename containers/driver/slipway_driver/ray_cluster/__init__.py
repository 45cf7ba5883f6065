"""The Ray launcher: a Ray cluster on all training hosts, with the entry point on the first host."""
