"""Text in, token shards out: the data preparation step, on one host or many."""
