"""Before any test imports PyTorch: one thread, because the models are tiny and threads that wait for each other burn the machine."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
