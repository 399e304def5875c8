"""Run directories that survive a kill and cannot execute anything, and engines that fill them.

An executor of joblib, Dask, Ray or any other runs the calls. What it does not do is here: a result is named after
everything that it depends on, so that work can be stopped anywhere and gone on with, on any engine, with equal bits.
"""

from reticent.tasks.engine import Progress as Progress
from reticent.tasks.engine import execute as execute
from reticent.tasks.engines import Dask as Dask
from reticent.tasks.engines import Engine as Engine
from reticent.tasks.engines import Local as Local
from reticent.tasks.engines import Ray as Ray
from reticent.tasks.files import read_json as read_json
from reticent.tasks.files import read_tensors as read_tensors
from reticent.tasks.files import write_json as write_json
from reticent.tasks.store import Kept as Kept
from reticent.tasks.store import Store as Store
from reticent.tasks.store import Task as Task
