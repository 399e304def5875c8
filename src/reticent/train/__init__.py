"""DP-SGD runs and the ledger of what really ran."""

from reticent.train.config import TrainConfig, load_config, parse_config
from reticent.train.hooks import RunContext, Step, StepHook, StopTraining, Update
from reticent.train.loop import FitRecord, Settings, fit
from reticent.train.run import train
from reticent.train.rundir import Run, load_run
from reticent.train.trace import Trace, TraceShard

__all__ = [
    "FitRecord",
    "Run",
    "RunContext",
    "Settings",
    "Step",
    "StepHook",
    "StopTraining",
    "Trace",
    "TraceShard",
    "TrainConfig",
    "Update",
    "fit",
    "load_config",
    "load_run",
    "parse_config",
    "train",
]
