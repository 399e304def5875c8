"""Twenty pages at once on loopback: answers keep coming and memory stays bounded."""

from __future__ import annotations

import http.client
import json
import os
import random
import resource
import statistics
import threading
import time
from typing import Any

import pytest

from reticent.dashboard.server import Server
from reticent.dashboard.state import DEFAULTS

SECONDS = float(os.environ.get("RETICENT_LOAD_SECONDS", "60"))


def ask(served: Server, dependency: dict[str, Any], state: dict[str, Any]) -> int:
    pieces = [piece.rpartition(".") for piece in dependency["output"].strip(".").split("...")]
    payload = {
        "output": dependency["output"],
        "outputs": [{"id": name, "property": prop} for name, _, prop in pieces],
        "inputs": [{**p, "value": "light" if p["id"] == "theme" else state} for p in dependency["inputs"]],
        "state": [{**p, "value": "light"} for p in dependency.get("state", [])],
        "changedPropIds": [f"{dependency['inputs'][0]['id']}.data"],
    }
    status, _ = talk(served, "POST", "_dash-update-component", json.dumps(payload))
    return status


def talk(served: Server, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
    try:
        connection.request(method, f"/{path}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_pages_at_once(served: Server) -> None:
    known = json.loads(talk(served, "GET", "_dash-dependencies")[1])
    explore = next(d for d in known if "rest.data" in d["output"] and "headline" in d["output"])
    rest = next(d for d in known if d["inputs"][0]["id"] == "rest")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    end, first, whole, failed = time.monotonic() + SECONDS, [], [], []

    def page(number: int) -> None:
        rng, turn = random.Random(number), 0  # noqa: S311
        while time.monotonic() < end:
            turn += 1
            settings = {
                **DEFAULTS,
                "noise_multiplier": f"{rng.uniform(0.8, 3):.3g}",
                "steps": str(rng.randint(1, 3000)),
                "attackers": rng.choice(["", "membership", "relaxed"]),
            }
            asked = {"settings": settings, "session": str(number), "turn": turn}
            for dependency, times in ((explore, first), (rest, whole)):
                started = time.monotonic()
                if ask(served, dependency, asked) != 200:
                    failed.append(number)
                times.append(time.monotonic() - started)
            time.sleep(rng.uniform(1.0, 4.0))

    threads = [threading.Thread(target=page, args=(k,)) for k in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    print(f"{len(first)} first answers, median {statistics.median(first):.2f} s; memory grew by {grown:.2f} GiB")
    print(f"{len(whole)} whole answers, median {statistics.median(whole):.2f} s, most {max(whole):.1f} s")
    assert failed == []
    assert len(whole) >= 20
    assert grown < 1.0
