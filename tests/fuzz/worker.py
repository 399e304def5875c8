"""A process that runs commands on hostile files, and says what they did: read by ``test_fuzz``, line by line.

Each request is a JSON line {"folder": ..., "verb": ..., "arguments": [...]}; each answer says the exit code, the
output, a traceback if there was one, the memory at its peak, and every path outside the folder that was touched.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import site
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

ROOT = str(Path.cwd())
ALLOWED = (
    *{str(Path(p).resolve()) for p in (sys.prefix, sys.base_prefix, *site.getsitepackages(), Path.cwd() / "src")},
    str(Path.cwd() / "tests"),
    *("/proc", "/sys", "/usr", "/etc", "/lib", "/dev/null", "/dev/urandom", "/dev/tty"),
)
WATCHED = {
    "open": 0,
    "os.mkdir": 0,
    "os.remove": 0,
    "os.rename": 1,
    "os.rmdir": 0,
    "os.chmod": 0,
    "os.link": 1,
    "os.symlink": 1,
    "os.truncate": 0,
    "os.system": 0,
    "os.listdir": 0,
    "subprocess.Popen": 0,
    "os.exec": 0,
    "os.posix_spawn": 0,
    "socket.connect": 1,
    "shutil.rmtree": 0,
}
_PURE = {"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect"}


class Watch:
    """Notes what an audit event touches outside of one folder."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.touched: list[str] = []
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.folder is None or event not in WATCHED:
            return
        target = arguments[WATCHED[event]]
        if isinstance(target, int) and event not in _PURE:
            return
        path = os.path.realpath(os.fsdecode(target)) if isinstance(target, (str, bytes, os.PathLike)) else str(target)
        if event in _PURE or not self._inside(path, event, arguments):
            self.touched.append(f"{event} {path}")

    def _inside(self, path: str, event: str, arguments: tuple[object, ...]) -> bool:
        if path == self.folder or path.startswith((f"{self.folder}/", f"{tempfile.gettempdir()}/torchinductor_")):
            return True  # torch makes an empty folder of its own
        flags = arguments[2] if event == "open" and len(arguments) > 2 else None
        if event == "os.listdir" and path == ROOT:
            return True  # Python looks for modules where it was started
        reading = event == "os.listdir" or (isinstance(flags, int) and not flags & (os.O_WRONLY | os.O_RDWR))
        return reading and any(path == root or path.startswith(f"{root}/") for root in ALLOWED)


def read_run(folder: str) -> None:
    """Everything that a run gives."""
    from reticent.training import load_run

    run = load_run(folder)
    run.ledger.mechanism()
    run.ledger.public()
    run.ledger.to_json()
    run.config  # noqa: B018
    run.weights()
    run.model()
    run.sensitivity()
    for _ in run.trace() or ():
        pass
    run.dataset()


def read_ledger(file: str) -> None:
    """A ledger, and what it says."""
    from reticent.records.ledger import RunLedger

    ledger = RunLedger.from_json(Path(file).read_bytes(), file)
    ledger.public()
    RunLedger.from_json(ledger.to_json())
    ledger.mechanism()
    ledger.warnings  # noqa: B018
    ledger.vouches()
    list(ledger.contradictions())


def answer(request: dict[str, object], watch: Watch) -> dict[str, object]:
    """Run one request."""
    from reticent.cli import main
    from reticent.kernel.errors import ReticentError

    out, err, trace, code = io.StringIO(), io.StringIO(), None, 0
    started = time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    watch.folder, watch.touched = os.path.realpath(str(request["folder"])), []
    os.chdir(watch.folder)
    words = [str(word) for word in request["arguments"]]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            match request["verb"]:
                case "cli":
                    main(words)
                case "read_run":
                    read_run(*words)
                case "read_ledger":
                    read_ledger(*words)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except ReticentError as error:
        code = 2
        err.write(f"{error}\n")
    except BaseException:
        trace = traceback.format_exc()
    watch.folder = None
    return {
        "code": code,
        "out": out.getvalue()[-4000:],
        "err": err.getvalue()[-4000:],
        "trace": trace,
        "seconds": time.process_time() - started,
        "grown": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024,
        "touched": watch.touched,
    }


def serve() -> None:
    """Answer until the input ends."""
    import reticent.attacks.base
    import reticent.certificates.store
    import reticent.training.run  # noqa: F401

    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    watch = Watch()
    channel.write("ready\n")
    channel.flush()
    for line in sys.stdin:
        channel.write(json.dumps(answer(json.loads(line), watch)) + "\n")
        channel.flush()


if __name__ == "__main__":
    tempfile.tempdir = "/tmp"  # noqa: S108
    serve()
