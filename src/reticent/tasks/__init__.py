"""Run directories that survive a kill and cannot execute anything, and engines that fill them.

joblib, Dask and Ray run the calls. What they do not do is here: a result is named after everything that it depends on,
so that work can be stopped anywhere and gone on with, on any engine, with equal bits.
"""

from reticent.tasks.engine import Progress as Progress
from reticent.tasks.engine import execute as execute
from reticent.tasks.files import read_json as read_json
from reticent.tasks.files import read_tensors as read_tensors
from reticent.tasks.files import write_json as write_json
from reticent.tasks.sessions import Dask as Dask
from reticent.tasks.sessions import Engine as Engine
from reticent.tasks.sessions import Local as Local
from reticent.tasks.sessions import Ray as Ray
from reticent.tasks.store import Kept as Kept
from reticent.tasks.store import Store as Store
from reticent.tasks.store import Task as Task
