"""What results say beyond their own verdict. Rates that no card has: a layer whose executed operations come faster than the
unit that its schedule names was seen to compute by the probes beside it, or, where nothing was probed, than its data sheet
says. And the share of a network's time that its products on matrix units take, how near these come to the card's peak, and
what peers take for the whole."""

import json
import pathlib
import re

from peers.table import WHOLE

DEVICES = pathlib.Path(__file__).resolve().parents[2] / "devices"
TOLERANCE = 1.03  # of a peak; probes that lie further apart than that judge nothing


def compute_probe(row, unit):
    """What was probed of this unit beside a row; empty where nothing was."""
    probed = row.get("roofs", {}).get("compute", {})
    return probed if probed.get("of") == unit and probed.get("probed", 0) > 0 else {}


def apart(probed):
    """Whether probes saw clocks so different that none of them is the layer's."""
    return probed.get("spread_percent", 0) > 100 * (TOLERANCE - 1)


def probes_apart(path):
    """A sentence on the rows whose probes cannot judge them; empty where there are none."""
    try:
        data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if not isinstance(data, dict) or not isinstance(data.get("device"), dict):
        return ""
    worst, names = 0.0, []
    for row in data.get("rows", []):
        unit = re.search(r"\bunit=(\S+)", row.get("schedule") or "")
        probed = compute_probe(row, unit[1]) if unit else {}
        if probed and apart(probed):
            worst, names = max(worst, probed["spread_percent"]), [*names, row.get("name")]
    if not names:
        return ""
    return f"probes lie up to {worst:.1f} % apart and judge nothing of {', '.join(map(str, names))}: data sheets do"


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
        probed = compute_probe(row, unit[1])
        measured = bool(probed) and not apart(probed)
        peak = probed["probed"] if measured else peaks.get(unit[1])
        rate = (row.get("executed_gflops") or 0) * 1e9
        if peak and rate > TOLERANCE * peak:
            why = "its probes lie apart" if probed else "nothing was probed"
            whence = "probed" if measured else f"by its data sheet, {why}"
            found.append(
                f"{row.get('name')}: {rate * 1e-12:.1f} TFLOP/s by {unit[1]}, whose peak is {peak * 1e-12:.1f} ({whence})"
            )
    return found


def whole_networks(log):
    """What a table of scripts/gpu_peers.py says of networks, a sentence each."""
    return [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if WHOLE in line]


def matrix_peaks(device):
    """Of each matrix unit the highest rate for operands of its type - mma's are held to wgmma's -, by the data sheet where the
    card is in devices/: what results say of a unit may be what was probed."""
    units = [unit for unit in device.get("units", []) if unit.get("kind") == "matrix"]
    for path in sorted(DEVICES.glob("*.json")):
        known = json.loads(path.read_text(encoding="utf-8"))
        if device.get("name") and (known["name"], known["kind"]) == (device["name"], device.get("kind")):
            units = [unit for unit in known["units"] if unit["kind"] == "matrix"]
    rate = lambda unit: unit.get("total_flops_per_second") or 0
    return {one["name"]: max(rate(unit) for unit in units if unit.get("input") == one.get("input")) for one in units}


def matrix_time(path):
    """A sentence on the steps of a network by `sparkle bench --output`: their share of the time by the unit that each names,
    what those on matrix units execute beside the card's peak, and the whole run; empty for files of another kind."""
    try:
        data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    device = data.get("device") if isinstance(data, dict) else None
    if not isinstance(device, dict) or "median_ms" not in data.get("total", {}):
        return ""
    matrix = matrix_peaks(device)
    taken, steps, executed, at_peak = {}, 0, 0.0, 0.0
    for row in data.get("rows", []):
        unit = re.search(r"\bunit=(\S+)", row.get("schedule") or "")
        if row.get("median_ms"):
            name = unit[1] if unit else "none"
            taken[name], steps = taken.get(name, 0) + row["median_ms"], steps + 1
            flops = 1e6 * row["median_ms"] * (row.get("executed_gflops") or 0)
            if matrix.get(name):
                executed, at_peak = executed + flops, at_peak + 1e3 * flops / matrix[name]
    total = sum(taken.values())
    if not total:
        return ""
    busy = sum(ms for name, ms in taken.items() if name in matrix)
    parts = ", ".join(f"{name} {100 * ms / total:.1f} %" for name, ms in sorted(taken.items(), key=lambda one: -one[1]))
    said = f"matrix units take {100 * busy / total:.1f} % of the {total:.3f} ms of {steps} steps ({parts})"
    if at_peak:
        said += f", execute {executed / busy * 1e-9:.1f} TFLOP/s there, {100 * at_peak / busy:.1f} % of the card's peak of "
        said += f"{executed / at_peak * 1e-9:.1f}, and {100 * at_peak / total:.1f} % of it over all steps"
    plain = data.get("total", {}).get("device_ms") or data.get("profiling", {}).get("plain_ms")
    return said + (f"; the whole run takes {plain:.3f} ms" if plain else "")
