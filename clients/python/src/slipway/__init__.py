"""Python client of Slipway: launch and follow LLM training on Amazon SageMaker training jobs.

The client calls the control function of a team's environment, as the command line does. Rules, plans and prices are computed there.
"""

from ._archive import Archive, archive_folder
from .environment import Environment
from .errors import Refused, ServiceError, SlipwayError, UsageError
from .run import Run

__all__ = [
    "Archive",
    "Environment",
    "Refused",
    "Run",
    "ServiceError",
    "SlipwayError",
    "UsageError",
    "archive_folder",
]
__version__ = "0.3.0"
