"""Run directories that survive a kill and cannot execute anything, and engines that fill them."""

from reticent.tasks.engine import Progress, execute
from reticent.tasks.readers import read_json, read_table, read_tensors
from reticent.tasks.sessions import Dask, Engine, Local, Ray
from reticent.tasks.store import Store, Task
from reticent.tasks.writers import write_json, write_table, write_tensors

__all__ = [
    "Dask",
    "Engine",
    "Local",
    "Progress",
    "Ray",
    "Store",
    "Task",
    "execute",
    "read_json",
    "read_table",
    "read_tensors",
    "write_json",
    "write_table",
    "write_tensors",
]
