"""Run directories that survive a kill and cannot execute anything, and engines that fill them.

joblib, Dask and Ray run the calls. What they do not do is here: a result is named after everything that it depends on,
so that work can be stopped anywhere and gone on with, on any engine, with equal bits.
"""

from reticent.tasks.engine import Progress, execute
from reticent.tasks.files import read_json, read_tensors, write_json
from reticent.tasks.sessions import Dask, Engine, Local, Ray
from reticent.tasks.store import Store, Task

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
    "read_tensors",
    "write_json",
]
