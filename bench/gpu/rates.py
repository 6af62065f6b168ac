"""Rates that no card has: a layer whose executed operations come faster than the unit that its schedule names was seen to
compute by the probes beside it, or, where nothing was probed, than its data sheet says."""

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
    device = data.get("device") if isinstance(data, dict) else None
    if not isinstance(device, dict):  # of peers it is a name
        return []
    peaks = {unit.get("name"): unit.get("total_flops_per_second") for unit in device.get("units", [])}
    found = []
    for row in data.get("rows", []):
        unit = re.search(r"\bunit=(\S+)", row.get("schedule") or "")
        if not unit:
            continue
        probed = row.get("roofs", {}).get("compute", {})
        measured = probed.get("of") == unit[1] and probed.get("probed", 0) > 0
        peak = probed["probed"] if measured else peaks.get(unit[1])
        # Probes that lie apart saw other clocks than the layer may have had.
        allowed = TOLERANCE + (probed.get("spread_percent", 0) / 100 if measured else 0)
        rate = (row.get("executed_gflops") or 0) * 1e9
        if peak and rate > allowed * peak:
            whence = "probed" if measured else "by its data sheet, nothing was probed"
            found.append(
                f"{row.get('name')}: {rate * 1e-12:.1f} TFLOP/s by {unit[1]}, whose peak is {peak * 1e-12:.1f} ({whence})"
            )
    return found
