"""What all makers of figures share: how a result came about, means, which rows count, and tables as lines of Markdown."""
import math

ABBREVIATIONS = {"onednn": "oneDNN", "onnxruntime": "ONNX Runtime", "onnxruntime_blocked": "ONNX Runtime, blocked",
                 "openblas": "OpenBLAS", "best": "best of each layer"}


def how(result):
    """How a result came about, in one line."""
    made = result["certificate"]
    cpu, versions = made["cpu"], made["versions"]
    peers = [k for k in ("onednn", "onnxruntime", "openblas") if k in versions]
    beside = ", ".join(f"{ABBREVIATIONS[k]} {versions[k].removeprefix('OpenBLAS ').split(',')[0].split(' ')[0]}" for k in peers)
    return (f"{cpu['name']} ({cpu['architecture']}, family {cpu['family']}, {cpu['usable_cores']} cores), {made['date'][:10]}, "
            f"commit {made['commit'][:12]}, Sparkle {versions.get('sparkle', '?')}{', ' + beside if beside else ''}: "
            f"`{made['command']}`")


def hows(results):
    return [line for result in results for line in (how(result) + "  ",)]


def ms(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def mib(value):
    return f"{value / 2**20:.0f}"


def mean(values):
    """Geometric; None of nothing."""
    logs = [math.log(v) for v in values if v and v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def row_line(cells):
    return "| " + " | ".join(str(c) for c in cells) + " |"


def table(heads, rows, left=1):
    return [row_line(heads), "|" + "---|" * left + "---:|" * (len(heads) - left), *[row_line(r) for r in rows]]


def threads_of(result):
    return f"{result['threads']} thread{'s' * (result['threads'] > 1)}"


def unit_of(result):
    return result.get("settings", {}).get("unit", "the widest")


STEADY = 0.75  # of the largest peak that was probed in a run: below it somebody else had a part of the machine


def probed(row):
    """((unit, threads), peak) that was probed beside a row; a peak of 0 where none was."""
    compute = row.get("roofs", {}).get("compute", {})
    return (compute.get("of"), row.get("threads")), compute.get("probed", 0)


def disturbed(rows):
    """The rows, by their place, beside which the machine was not wholly ours: the peak probed there is less than three quarters
    of the largest that the same unit had in this run, or its probes are more than a quarter apart. Their shares of the peak
    say nothing of the kernels."""
    largest = {}
    for row in rows:
        unit, peak = probed(row)
        largest[unit] = max(largest.get(unit, 0), peak)
    found = set()
    for i, row in enumerate(rows):
        unit, peak = probed(row)
        if peak and (peak < STEADY * largest[unit] or row["roofs"]["compute"].get("spread_percent", 0) > 25):
            found.add(i)
    return found


def steady(rows):
    """(the rows that count, a sentence on those that do not, or nothing)."""
    out = disturbed(rows)
    kept = [row for i, row in enumerate(rows) if i not in out]
    return kept, left_out(len(out), len(rows))


def left_out(count, of):
    return f"; {count} of {of} rows ran while others used the machine and are left out" if count else ""
