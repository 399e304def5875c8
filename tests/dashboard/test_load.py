"""Twenty pages at once on loopback: answers keep coming and memory stays bounded.

``RETICENT_LOAD_SECONDS`` says how long; a minute if it says nothing.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import resource
import statistics
import threading
import time
from contextlib import closing
from typing import Any

import pytest

from reticent.dashboard.guard import cookie_of
from reticent.dashboard.server import Server
from reticent.dashboard.state import DEFAULTS

SECONDS = float(os.environ.get("RETICENT_LOAD_SECONDS", "60"))
_HEADERS = {"Content-Type": "application/json"}
DRAGGED = 5
"""Places of the slider before it rests."""


def ask(served: Server, question: dict[str, Any]) -> str | None:
    """One stage; what comes next."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
    with closing(connection):
        connection.request("POST", "/answer", json.dumps(question), _HEADERS | {"Cookie": _cookie(served)})
        found = connection.getresponse()
        assert found.status == 200
        answer: dict[str, Any] = json.loads(found.read())
    assert "figures" in answer or not answer or answer["next"], "a figure, or the next stage"
    return answer.get("next")


def _cookie(served: Server) -> str:
    return f"{cookie_of(served.port)}={served.token}"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_pages_at_once(served: Server) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    spent = time.process_time()
    end, first, whole, failed = time.monotonic() + SECONDS, [], [], []

    def page(number: int) -> None:
        """Somebody who drags the slider over a few places, waits for the proof, and looks at it for a while."""
        rng, turn = random.Random(number), 0  # noqa: S311
        while time.monotonic() < end:
            settings = {**DEFAULTS, "steps": str(rng.randint(1, 3000))}
            settings["attackers"] = rng.choice(["", "membership", "relaxed"])
            try:
                for place in range(DRAGGED):
                    turn, started = turn + 1, time.monotonic()
                    settings["noise_multiplier"] = f"{rng.uniform(0.8, 3):.3g}"
                    asked = {"settings": settings, "session": str(number), "turn": turn, "theme": "light"}
                    stage = ask(served, {**asked, "stage": "explore"})
                    first.append(time.monotonic() - started)
                    while stage and place == DRAGGED - 1:
                        stage = ask(served, {**asked, "stage": stage})
                whole.append(time.monotonic() - started)
            except Exception as error:
                failed.append(f"{number}: {error!r}")
            time.sleep(rng.uniform(5.0, 25.0))

    threads = [threading.Thread(target=page, args=(k,)) for k in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    for name, times in (("first", first), ("whole", whole)):
        print(f"{len(times)} {name} answers, median {statistics.median(times):.2f} s, most {max(times):.1f} s")
    print(f"{time.process_time() - spent:.0f} CPU seconds in {SECONDS:.0f} seconds; memory grew by {grown:.2f} GiB")
    assert failed == []
    assert len(whole) >= 20
    assert grown < 1.0
