"""The best of several calls that do the same: each is timed shortly, and those that were fastest are checked and measured."""

import time

from .libraries import PeerError

FINALISTS = 3


def best(driver, calls, output, check, seconds):
    """A row of the fastest call whose results are right: times, its name, how many were tried. `calls`: as they are made, each
    with a name; `output`: a tensor that each call fills, spoilt before what is checked; `check(call)` raises where it is wrong;
    `seconds`: after which no more are tried. Errors: PeerError."""
    begin, tried, refused = time.monotonic(), [], []

    def attempt(work):
        try:
            return work()
        except PeerError as error:
            refused.append(error)
            return None

    for call in calls:
        took = attempt(lambda: driver.quick(call))
        if took is not None:
            tried.append((took, len(tried), call))
        if tried and time.monotonic() - begin > seconds:
            break

    def measured(call):
        output.spoil()
        call()
        driver.wait()
        check(call)
        median, least, replayed = driver.measure(call)
        return {"median_ms": median * 1e3, "min_ms": least * 1e3, "algorithm": call.name, "replayed": replayed}

    rows = []
    for _, _, call in sorted(tried, key=lambda one: one[:2]):
        row = attempt(lambda: measured(call))
        rows += [row] if row else []
        if len(rows) == FINALISTS:
            break
    if not rows:
        raise refused[0] if refused else PeerError("none of its algorithms takes this.")
    return {**min(rows, key=lambda row: row["median_ms"]), "tried": len(tried)}
