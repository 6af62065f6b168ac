"""What scripts/update_figures writes between `<!-- figures: MAKER FILE... -->` and its end: one function per maker, from the
JSON of the files to lines of Markdown. Each table says above it by what command, commit, machine and versions it came about."""
import csv
import statistics

from tables.fixed import make_fixed  # noqa: F401
from tables.machines import make_many_machines  # noqa: F401
from tables.patterns import make_patterns  # noqa: F401
from tables.pipelines import make_pipelines  # noqa: F401
from tables.text import (ABBREVIATIONS, disturbed, how, hows, left_out, mean, mib, ms, number, steady, table, threads_of,
                         unit_of)

BEHIND = 0.93  # a ratio below this is told as a loss: differences of less are ties on a shared machine


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


def make_overview(root, results, files):
    """The networks of several machines in one table, a row a network and number of threads."""
    rows, behind = {}, []
    for at, result in enumerate(results):
        for r in result["rows"]:
            cells = rows.setdefault((r["network"], r["threads"]), ["-"] * (3 * len(results)))
            if not r["agree"]:
                cells[3 * at] = "outputs differ"
                continue
            ratio = 1 / r["time_ratio"]
            cells[3 * at:3 * at + 3] = [ms(r["sparkle"]["median_ms"]), ms(r["onnxruntime"]["median_ms"]), f"{ratio:.2f}"]
            if ratio < BEHIND:
                behind.append(f"{r['network']}, {threads_of(r)}, {architecture_of(result)}: {ratio:.2f}")
    heads = ["network", "threads"]
    for result in results:
        heads += [f"{architecture_of(result)}: Sparkle, ms", "ONNX Runtime, ms", "ratio"]
    said = "; ".join(behind) if behind else "none"
    return [*table(heads, [[*key, *cells] for key, cells in rows.items()]), "",
            f"Behind ONNX Runtime by more than 7 %: {said}. Measured by:", "", *[f"- {how(result)}" for result in results]]


def architecture_of(result):
    return result["certificate"]["cpu"]["architecture"]


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
    quiet = {id(result): {r["name"] for r in steady(result["rows"])[0]} for result in results}
    order = list(dict.fromkeys(classes.values()))
    for name in [*order, "**all**"]:
        for result in results:
            mine = [r for r in result["rows"] if name in ("**all**", classes.get(r["name"]))]
            if mine:
                rows.append([name, result["threads"], schedule_unit(result), len(mine),
                             number(mean([r["percent_of_peak"] for r in mine if r["name"] in quiet[id(result)]]), 0),
                             *[number(mean([r["peers"].get(p, {}).get("speedup") for r in mine])) for p in peers],
                             number(best_mean(result, mine)[0])])
    for result in results:
        behind = sorted((best_of(result, r), r["name"]) for r in result["rows"] if 0 < best_of(result, r) < BEHIND)
        off = sorted(abs(r["predicted_ms"] / r["median_ms"] - 1) * 100 for r in result["rows"] if r.get("predicted_ms"))
        counts.append(f"{threads_of(result)}, {schedule_unit(result)}: behind the best of the others by more than 7 %: "
                      f"{len(behind)} of {len(result['rows'])} layers; predicted times are off by "
                      f"{statistics.median(off):.1f} % in the median and {off[int(0.95 * (len(off) - 1))]:.1f} % at the "
                      f"95th percentile{disturbed_share(result)}.")
        losses += [[name, result["threads"], schedule_unit(result), f"{ratio:.2f}"] for ratio, name in behind]
    lines = [*hows(results), "", *table(heads, rows), "", *[c + "  " for c in counts], ""]
    heads = ["layer", "threads", "unit", "ratio"]
    return lines + (["All layers that are behind, worst first in each run:", "", *table(heads, losses)] if losses
                    else ["No layer is behind."])


def disturbed_share(result):
    """Ratios to other engines stand: they took turns with ours."""
    return left_out(len(disturbed(result["rows"])), len(result["rows"])).replace("are left out", "are not in % of peak")


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
    rows, notes = [], []
    for result in results:
        cores = result["device"]["cores"]
        every, said = steady(result["rows"])
        if said:
            notes.append(f"{cores} thread{'s' * (cores > 1)}, {schedule_unit(result)}{said}.  ")
        for algorithm in ["all", *dict.fromkeys(r["algorithm"] for r in every)]:
            mine = [r for r in every if algorithm in ("all", r["algorithm"])]
            shares = [number(mean([r[key] for r in mine]), 0) for key in ("percent_of_peak", "percent_of_roof")]
            rows.append([algorithm, cores, schedule_unit(result), len(mine), *shares, ms(sum(r["median_ms"] for r in mine))])
    heads = ["algorithm", "threads", "unit", "layers", "% of the FMA peak", "% of the roof", "sum of medians, ms"]
    return [*hows(results), "", *table(heads, rows), *([""] + notes if notes else [])]


def make_summary_roof(root, results, files):
    """The same in a sentence a result."""
    lines = []
    for result in results:
        rows, out = steady(result["rows"])
        peak, roof = (mean([r[key] for r in rows]) for key in ("percent_of_peak", "percent_of_roof"))
        cores = result["device"]["cores"]
        said = f"{cores} thread{'s' * (cores > 1)}, {schedule_unit(result)}"
        lines.append(f"- {said}: {peak:.0f} % of the FMA peak, {roof:.0f} % of the roof of each layer (geometric means of "
                     f"{len(rows)} layers{out}). {how(result)}")
    return lines


def make_headline(root, results, files):
    rows, names = [], list(dict.fromkeys(r["name"] for result in results for r in result["rows"]))
    marked = False
    for name in names:
        for result in results:
            r = next((x for x in result["rows"] if x["name"] == name), None)
            if r:
                mark = " *" if result["rows"].index(r) in disturbed(result["rows"]) else ""
                marked = marked or bool(mark)
                before = f"{ms(r['old_ms'])} ms, {r['old_what']}" if r.get("old_ms") else "-"
                rows.append([name, before, result["device"]["cores"], r["algorithm"], ms(r["median_ms"]), f"{r['gflops']:.0f}",
                             f"{r['percent_of_peak']:.0f}{mark}", f"{r['percent_of_roof']:.0f}{mark}"])
    heads = ["workload", "published before", "threads", "algorithm", "now, ms", "GFLOP/s", "% of peak", "% of roof"]
    lines = [*hows(results), "", *table(heads, rows, 2)]
    return lines + (["", "\\* others used the machine while this was measured."] if marked else [])


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


def make_builds(root, results, files):
    """Two builds beside each other."""
    lines = []
    for r in results:
        rows = [[row["unit"], row["threads"], row["layers"], " ".join(number(g, 3) for g in row["geometric_means"]),
                 number(row["geometric_mean_of_least_times"], 3),
                 ", ".join(f"{n} ({min(q):.2f})" for n, q in row["slower"].items()) or "none",
                 ", ".join(f"{n} ({max(q):.2f})" for n, q in row["faster"].items()) or "none"] for row in r["rows"]]
        heads = ["unit", "threads", "layers", "time after / before, each run", "of the least times", "slower in all runs",
                 "faster in all runs"]
        lines += [f"{how(r)}: {r['what']}  ", "", *table(heads, rows)]
    return lines


def beside_onnxruntime(results, key, least, most):
    """Rows of tools that compare many models with onnxruntime: what all of them come to, then the worst and the best."""
    heads = ["threads", "models", "geometric mean of onnxruntime's time over Sparkle's", f"below {least}", f"below {most}",
             "not equal"]
    rows, lines = [], []
    for r in results:
        ratios = sorted((1 / row["time_ratio"], row[key]) for row in r["rows"] if row["agree"])
        rows.append([r["threads"], len(r["rows"]), number(mean([q for q, _ in ratios])), sum(q < least for q, _ in ratios),
                     sum(q < most for q, _ in ratios), len(r["rows"]) - len(ratios)])
        shown = [f"{name} {number(q)}" for q, name in ratios]
        lines.append(f"{threads_of(r)}, worst first: {'; '.join(shown[:24])}. Best: {'; '.join(shown[:-9:-1])}.  ")
    return [*hows(results), "", *table(heads, rows), "", *lines]


def make_operators(root, results, files):
    return beside_onnxruntime(results, "operator", 0.7, 0.9)


def make_zoo(root, results, files):
    return beside_onnxruntime(results, "network", 0.8, 0.95)


STAGES = {
    "release": "clang 19, all tests",
    "gcc": "g++ 12, unit tests",
    "sanitize": "addresses, undefined behaviour, fuzzing",
    "threads": "data races",
    "arm": "kernels under qemu",
    "python": "wheel and its tests",
    "differential": "random models",
    "conformance": "the published tests",
    "vulkan": "models and tests on a software device",
    "mutants": "damaged models",
    "check": "the source text",
}


def make_minutes(root, results, files):
    """Of scripts/demo and scripts/test on machines with cold caches."""
    lines = []
    for r in results:
        demo, test = r["demo"], r["test"]
        rows = [[k, STAGES.get(k, "-"), f"{v:.1f}"] for k, v in test["stages"].items()]
        lines += [f"{how(r)}  ", f"`scripts/demo` with {demo['cores']} cores and a cold compiler cache: packages "
                  f"{demo['packages_s'] / 60:.1f} min, build {demo['build_s'] / 60:.1f} min. `scripts/test` with "
                  f"{test['cores']} cores and a cold compiler cache: {test['all']:.1f} min.", "",
                  *table(["stage", "what", "minutes"], rows, 2)]
    return lines


def make_files(root, results, files):
    """All results cited on this page, and how each came about."""
    return table(["file", "command", "commit", "date", "CPU", "load"],
                 [[f, f"`{r['certificate']['command']}`", r["certificate"]["commit"][:12], r["certificate"]["date"][:16],
                   f"{r['certificate']['cpu']['name']}, {r['certificate']['cpu']['architecture']}",
                   number(r["certificate"]["load_average"], 1)] for f, r in zip(files, results)], 6)


def make_check(root, results, files):
    """`check --measure` on real models: layers beside the whole, predictions beside both."""
    rows, lines = [], []
    for r in results:
        far = []
        for row in r["rows"]:
            rows.append([row["model"], r["threads"], ms(row["measured_ms"]), f"{100 * row['layers_share']:.1f} %",
                         ms(row["predicted_ms"]), f"{row['measured_ms'] / row['predicted_ms']:.2f}", row["counted"],
                         f"{100 * row['median_error']:.0f} %"])
            far += [(max(w["ratio"], 1 / w["ratio"]), f"{row['model']} {w['layer']} {w['ratio']:.2f}") for w in row["worst"]]
        missed = [f"{row['model']} {100 * row['layers_share']:.1f} %" for row in r["rows"]
                  if abs(row["layers_share"] - 1) > 0.1]
        lines.append(f"{threads_of(r)}: layers add up to {100 * r['least_share']:.1f} to {100 * r['largest_share']:.1f} % of "
                     f"the pass, farther than 10 % from it: {', '.join(missed) or 'none'}; the median layer is "
                     f"{100 * r['median_error']:.0f} % from its prediction. Measured over predicted, farthest first: "
                     f"{'; '.join(text for _, text in sorted(far, reverse=True)[:12])}.  ")
    heads = ["model", "threads", "a pass, ms", "layers add up to", "predicted, ms", "measured / predicted", "layers counted",
             "median error of these"]
    return [*hows(results), "", *table(heads, rows), "", *lines]
