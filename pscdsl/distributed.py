"""Several processes that run one program, on one machine or on many."""

from pscdsl._src.xla.cluster import Job as Job
from pscdsl._src.xla.cluster import start as start
from pscdsl._src.xla.launchers import DistributedError as DistributedError
