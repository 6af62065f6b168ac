"""What scripts/update_figures writes between `<!-- figures: MAKER FILE... -->` and its end: one function per maker, from the
JSON of the files to lines of Markdown. Each table says above it by what command, commit, machine and versions it came about."""
import csv
import math
import statistics

BEHIND = 0.93  # a ratio below this is told as a loss: differences of less are ties on a shared machine
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


def make_networks(root, results, files):
    rows, behind = [], []
    for result in results:
        for r in result["rows"]:
            if not r["agree"]:
                rows.append([r["network"], unit_of(result), r["threads"], "outputs differ", "", "", "", "", ""])
                continue
            ratio, (low, high) = 1 / r["time_ratio"], r["time_ratio_quartiles"]
            ours, theirs = r["sparkle"], r["onnxruntime"]
            first = ["-", "-"]
            if "first_answer" in ours:
                first = [ms(e["first_answer"]["load_ms"] + e["first_answer"]["first_ms"]) for e in (ours, theirs)]
            rows.append([r["network"], unit_of(result), r["threads"], ms(ours["median_ms"]), ms(theirs["median_ms"]),
                         f"{ratio:.2f}", f"{1 / high:.2f}-{1 / low:.2f}", *first])
            if ratio < BEHIND:
                behind.append(f"{r['network']} on {unit_of(result)}, {threads_of(r)}: {ratio:.2f}")
    heads = ["network", "Sparkle's unit", "threads", "Sparkle, ms", "onnxruntime, ms", "ratio", "quartiles", "first answer, ms",
             "onnxruntime's"]
    said = f"{'; '.join(behind)}." if behind else "none."
    said = "Behind onnxruntime by more than 7 %: " + said
    return [*hows(results), "", *table(heads, rows, 2), "", said]


def best_of(result, row):
    """Times of the fastest other engine over ours. On AVX2 only those count that are held to it
    too: ONNX Runtime cannot be."""
    if schedule_unit(result) != "avx2":
        return row.get("best_speedup")
    taking_part = [row["peers"].get(p, {}).get("speedup", 0) for p in ("onednn", "openblas")]
    return min((s for s in taking_part if s > 0), default=0)


def best_mean(result, rows):
    """(geometric mean, layers in it) of best_of. Layers so short that nothing is left of oneDNN's time are left out: without
    oneDNN the best of the others would be one that is far behind. As losses they count all the same."""
    every = any("onednn" in r.get("peers", {}) for r in result["rows"])
    kept = [r for r in rows if not every or r["peers"].get("onednn", {}).get("speedup")]
    return mean([best_of(result, r) for r in kept]), len(kept)


def layer_class(layer):
    """Of a row of shapes/layers.csv."""
    n = {k: int(v) for k, v in layer.items() if v and v.lstrip("-").isdigit()}
    groups, r, s = n.get("groups", 1), n.get("r", 1), n.get("s", 1)
    if groups > 1 and groups == n["c"]:
        return f"depthwise {r}x{s}"
    if groups > 1:
        return f"grouped {r}x{s}"
    if r == s == 1:
        return "1x1"
    if r == s == 3 and n.get("stride_h", 1) == 1 and n.get("dil_h", 1) <= 1 and n["c"] > 4:
        return "3x3, stride 1"
    return "other dense"


def make_layers(root, results, files):
    with open(root / "shapes" / "layers.csv", encoding="utf-8", newline="") as file:
        classes = {r["name"]: layer_class(r) for r in csv.DictReader(line for line in file if not line.startswith("#"))}
    peers = [p for p in ("onednn", "onnxruntime_blocked", "onnxruntime", "openblas")
             if any(p in r.get("peers", {}) for result in results for r in result["rows"])]
    heads = ["class", "threads", "unit", "layers", "% of peak", *[ABBREVIATIONS[p] for p in peers], ABBREVIATIONS["best"]]
    rows, losses, counts = [], [], []
    order = list(dict.fromkeys(classes.values()))
    for name in [*order, "**all**"]:
        for result in results:
            mine = [r for r in result["rows"] if name in ("**all**", classes.get(r["name"]))]
            if mine:
                rows.append([name, result["threads"], schedule_unit(result), len(mine),
                             number(mean([r["percent_of_peak"] for r in mine]), 0),
                             *[number(mean([r["peers"].get(p, {}).get("speedup") for r in mine])) for p in peers],
                             number(best_mean(result, mine)[0])])
    for result in results:
        behind = sorted((best_of(result, r), r["name"]) for r in result["rows"] if 0 < best_of(result, r) < BEHIND)
        off = sorted(abs(r["predicted_ms"] / r["median_ms"] - 1) * 100 for r in result["rows"] if r.get("predicted_ms"))
        counts.append(f"{threads_of(result)}, {schedule_unit(result)}: behind the best of the others by more than 7 %: "
                      f"{len(behind)} of {len(result['rows'])} layers; predicted times are off by "
                      f"{statistics.median(off):.1f} % in the median and {off[int(0.95 * (len(off) - 1))]:.1f} % at the "
                      f"95th percentile.")
        losses += [[name, result["threads"], schedule_unit(result), f"{ratio:.2f}"] for ratio, name in behind]
    lines = [*hows(results), "", *table(heads, rows), "", *[c + "  " for c in counts], ""]
    heads = ["layer", "threads", "unit", "ratio"]
    return lines + (["All layers that are behind, worst first in each run:", "", *table(heads, losses)] if losses
                    else ["No layer is behind."])


def schedule_unit(result):
    """The widest unit that the device of a result has: what most of its layers run on."""
    units = result.get("device", {}).get("units", [])
    return units[0]["name"] if units else "-"


def make_summary_layers(root, results, files):
    """The same in a sentence a result."""
    lines = []
    for result in results:
        best, compared = best_mean(result, result["rows"])
        behind = sum(0 < best_of(result, r) < BEHIND for r in result["rows"])
        lines.append(f"- {threads_of(result)}, {schedule_unit(result)}: the best of the others takes {number(best)} times as "
                     f"long (geometric mean of {compared} layers); behind it by more than 7 %: {behind} of "
                     f"{len(result['rows'])}. {how(result)}")
    return lines


def make_roof(root, results, files):
    rows = []
    for result in results:
        cores, every = result["device"]["cores"], result["rows"]
        for algorithm in ["all", *dict.fromkeys(r["algorithm"] for r in every)]:
            mine = [r for r in every if algorithm in ("all", r["algorithm"])]
            shares = [number(mean([r[key] for r in mine]), 0) for key in ("percent_of_peak", "percent_of_roof")]
            rows.append([algorithm, cores, schedule_unit(result), len(mine), *shares, ms(sum(r["median_ms"] for r in mine))])
    heads = ["algorithm", "threads", "unit", "layers", "% of the FMA peak", "% of the roof", "sum of medians, ms"]
    return [*hows(results), "", *table(heads, rows)]


def make_summary_roof(root, results, files):
    """The same in a sentence a result."""
    lines = []
    for result in results:
        peak, roof = (mean([r[key] for r in result["rows"]]) for key in ("percent_of_peak", "percent_of_roof"))
        cores = result["device"]["cores"]
        said = f"{cores} thread{'s' * (cores > 1)}, {schedule_unit(result)}"
        lines.append(f"- {said}: {peak:.0f} % of the FMA peak, {roof:.0f} % of the roof of each layer (geometric means of "
                     f"{len(result['rows'])} layers). {how(result)}")
    return lines


def make_headline(root, results, files):
    rows, names = [], list(dict.fromkeys(r["name"] for result in results for r in result["rows"]))
    for name in names:
        for result in results:
            r = next((x for x in result["rows"] if x["name"] == name), None)
            if r:
                before = f"{ms(r['old_ms'])} ms, {r['old_what']}" if r.get("old_ms") else "-"
                rows.append([name, before, result["device"]["cores"], r["algorithm"], ms(r["median_ms"]), f"{r['gflops']:.0f}",
                             f"{r['percent_of_peak']:.0f}", f"{r['percent_of_roof']:.0f}"])
    heads = ["workload", "published before", "threads", "algorithm", "now, ms", "GFLOP/s", "% of peak", "% of roof"]
    return [*hows(results), "", *table(heads, rows, 2)]


def make_first_answers(root, results, files):
    rows = []
    for result in results:
        for r in result["rows"]:
            peer = r["onnxruntime"]["load_ms"] + r["onnxruntime"]["first_ms"]
            rows.append([r["network"], r["threads"], ms(r["compiled"]["process_ms"]), ms(r["sparkle"]["process_ms"]), ms(peer),
                         f"{r['first_answer_ratio']:.2f}", mib(r["compiled"]["peak_bytes"]), mib(r["sparkle"]["peak_bytes"]),
                         mib(r["budget_bytes"])])
    heads = ["network", "threads", "compiled file, ms", "model, ms", "onnxruntime, ms", "compiled over onnxruntime",
             "peak, MiB: compiled", "model", "onnxruntime"]
    return [*hows(results), "", *table(heads, rows)]


def make_first_answers_range(root, results, files):
    ratios = [r["first_answer_ratio"] for result in results for r in result["rows"]]
    return [f"A file of `sparkle compile` gives its first answer in {min(ratios):.2f} to {max(ratios):.2f} of the time that "
            f"onnxruntime takes to its own. {how(results[0])}"]


def make_denormals(root, results, files):
    (r,) = results
    return [f"Networks of one kind of step ({', '.join(x['name'] for x in r['rows'])}) took {r['least_ratio']:.2f} to "
            f"{r['largest_ratio']:.2f} times as long on denormal inputs as on normal ones. {how(r)}"]


def sample(results, name, shown):
    (r,) = results
    said = r["samples"][name]
    return ["", f"    $ {said['command']}", *[f"    {line}".rstrip() for line in shown(said["printed"])], ""]


def make_sample_upscale(root, results, files):
    return sample(results, "upscale", lambda lines: lines)


def make_sample_layers(root, results, files):
    return sample(results, "layers", lambda lines: [*lines[1:5], "...", *[line for line in lines if "sum of medians" in line]])


def make_sample_plan(root, results, files):
    return sample(results, "plan", lambda lines: [*lines[:5], "...", *lines[-2:]])


# Why a step may lose, by its name: what the machine does there, not what the figure of one run was.
LOSES = {
    "cache-blocked": "one sum at a time waits for each product before the next, four cycles a product whatever the caches "
                     "hold: cutting loops to the caches cannot show before there are several sums",
    "register-tiled": "im2col writes every pixel once for each tap and reads it back; in 3x3 that is nine times the input, "
                      "which a single vectorised sum without im2col does not move",
    "winograd6": "tiles of 6x6 fit planes that are no multiple of six badly, and its weights are seven ninths larger than "
                 "those of 4x4",
    "winograd2": "what it saves in products it pays in transforms",
    "implicit GEMM": "rows of the tile are gathered tap by tap, where 1x1 filters have nothing to gather",
    "gemm_f16": "weights are widened as they are read, which pays where they come from memory only",
    "gemm_bf16": "weights are widened as they are read, which pays where they come from memory only",
    "fft": "filters of three taps are too short for transforms",
}
OFF = {
    "tile": "needs no explanation",
    "block": "the bytes that it is predicted to spare did not show; why was not found out",
    "pipeline": "the core's own prefetching sees rows of weights and pixels that are read in order, and its window of several "
                "hundred instructions runs ahead of the sums; so there is taken to be little left to fetch",
    "fuse": "a plane that stays in the caches between the two passes costs little beside the products",
    "vectorise": "needs no explanation",
}


def planned_note(rows, planned):
    """Why the planner's way is behind the best level, by what the planner knew of that."""
    best = max((r for r in rows if "percent_of_peak" in r and r is not planned), key=lambda r: r["percent_of_peak"])
    if best["algorithm"] == planned["algorithm"]:
        return "the same algorithm as the best row: what differs is the noise of the machine"
    said = f"the planner took {planned['algorithm']}, and {best['level']} came out faster; it was predicted "
    if best["predicted_ms"] >= planned["predicted_ms"]:
        return said + "slower"
    return said + "faster, by less than its larger rounding errors must be worth"


def make_patterns(root, results, files):
    layers = list(dict.fromkeys(name for result in results for name in result["layers"]))
    lines = [*hows(results)]
    for layer in layers:
        here = [r for r in results if layer in r["layers"]]
        lines += ["", f"## {layer}", "", here[0]["layers"][layer]["why"], ""]
        for kind in ("ablate", "ladder"):
            rows, notes, absent, before = [], {}, {}, {}
            for result in here:
                threads, best = result["threads"], 0
                for row in result["layers"][layer][kind]:
                    name = row.get("level") or row["without"]
                    if "absent" in row:
                        absent.setdefault(name, row["absent"])
                        continue
                    share = row["percent_of_peak"]
                    # By shares of the peak probed beside each row: a core may be faster a second later.
                    factor, note = None, None
                    if name == "as planned":
                        factor = share / best if best else None
                        if factor and factor < 0.97:
                            note = "is behind: " + planned_note(result["layers"][layer][kind], row)
                    elif kind == "ladder":
                        factor = share / before[threads] if before.get(threads) and share else None
                        best = max(best, share)
                        if not name.startswith("gemm_"):  # weights in 16 bits: beside the product, not a step on the way
                            before[threads] = share
                        if factor and factor < 0.97:
                            note = "loses: " + LOSES.get(name, "why was not found out")
                    else:
                        before.setdefault(threads, share)
                        factor = before[threads] / share if share and name != "all on" else None
                        if factor and factor < 1.05 and name in OFF:
                            note = "brings next to nothing here: " + OFF[name]
                    if note:
                        notes.setdefault((name, note), []).append(str(threads))
                    moved = list(row["predicted_bytes"].values())
                    rows.append([name, row["threads"], f"{row['gflops']:.1f}", f"{share:.1f}", number(factor),
                                 f"{(moved[1] if len(moved) > 1 else 0) / 1e6:.1f}", f"{moved[-1] / 1e6:.1f}"])
            order = list(dict.fromkeys(r[0] for r in rows))
            rows.sort(key=lambda r: (order.index(r[0]), r[1]))
            head = "switched off" if kind == "ablate" else "level"
            lines += table([head, "threads", "GFLOP/s", "% of peak", "brings x" if kind == "ablate" else "x", "MB beyond L1",
                            "MB from DRAM"], rows)
            lines += ["", *[f"- {name} ({' and '.join(at)} thread{'s' * (at != ['1'])}) {note}."
                            for (name, note), at in notes.items()]]
            if kind == "ablate":
                lines += [f"- {name} is not there: {why}." for name, why in absent.items()]
            lines += [""] if lines[-1] else []
    return lines[:-1]


def make_files(root, results, files):
    """All results cited on this page, and how each came about."""
    return table(["file", "command", "commit", "date", "CPU", "load"],
                 [[f, f"`{r['certificate']['command']}`", r["certificate"]["commit"][:12], r["certificate"]["date"][:16],
                   f"{r['certificate']['cpu']['name']}, {r['certificate']['cpu']['architecture']}",
                   number(r["certificate"]["load_average"], 1)] for f, r in zip(files, results)], 6)
