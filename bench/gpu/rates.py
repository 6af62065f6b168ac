"""Rates that no card has: a layer whose executed operations come faster than the peak of the unit that its schedule names."""

import json
import pathlib
import re

TOLERANCE = 1.03


def above_peak(path):
    """One sentence for each such row of a file of `sparkle bench --output`; none for files of another kind."""
    try:
        data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(data, dict) or "device" not in data:
        return []
    peaks = {unit.get("name"): unit.get("total_flops_per_second") for unit in data["device"].get("units", [])}
    found = []
    for row in data.get("rows", []):
        unit = re.search(r"\bunit=(\S+)", row.get("schedule") or "")
        peak = peaks.get(unit[1]) if unit else None
        rate = (row.get("executed_gflops") or 0) * 1e9
        if peak and rate > TOLERANCE * peak:
            found.append(f"{row.get('name')}: {rate * 1e-12:.1f} TFLOP/s by {unit[1]}, whose peak is {peak * 1e-12:.1f}")
    return found
