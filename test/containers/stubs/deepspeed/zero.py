"""zero.Init: parameters are partitioned as they are made."""

from stub_log import record

INITS = []


class Init:
    def __init__(self, config_dict_or_path=None, enabled=True, **more):
        INITS.append(enabled)
        record("zero.Init", enabled=enabled)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False
