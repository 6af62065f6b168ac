"""docs/patterns.md: what each pattern and each step of the ladder brings, with a reason for what does not - where the data does
not contradict it."""
from figure_text import disturbed, hows, number, table

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


def rows_of_a_busy_machine(result):
    """Rows by their identity; the largest peak is that of the whole run."""
    rows = [r for layer in result["layers"].values() for kind in ("ablate", "ladder") for r in layer[kind]]
    return {id(rows[i]) for i in disturbed(rows)}


def planned_note(rows, planned):
    """Why the planner's way is behind the best step, by what the planner knew of that. One schedule for both is
    noise, which `judged` tells."""
    best = max((r for r in rows if "percent_of_peak" in r and r is not planned), key=lambda r: r["percent_of_peak"])
    if best["algorithm"] == planned["algorithm"]:
        if best.get("schedule") == planned.get("schedule"):
            return "why was not found out"
        return f"{best['level']} has another schedule of {planned['algorithm']}, and came out faster"
    said = f"the planner took {planned['algorithm']}, and {best['level']} came out faster; it was predicted "
    if best["predicted_ms"] >= planned["predicted_ms"]:
        return said + "slower"
    return said + "faster, by less than its larger rounding errors must be worth"


def quotients(rows):
    """By how much the same kernel - algorithm and schedule - differed from row to row of one layer and run, at the most: the
    noise that a factor must exceed to mean anything. None where no kernel occurs twice."""
    same = {}
    for row in rows:
        if row.get("schedule") and row.get("percent_of_peak"):
            same.setdefault((row["algorithm"], row["schedule"], row["threads"]), []).append(row["percent_of_peak"])
    return max((max(shares) / min(shares) for shares in same.values() if len(shares) > 1), default=None)


def judged(factor, note, noise):
    """A reason is given for what is more than noise. The factor may be of the very pair that the noise is of: their last bits
    differ."""
    if noise and max(factor, 1 / factor) <= noise * (1 + 1e-9):
        return "is within what the same kernel, measured twice, differed by"
    return note


def make_patterns(root, results, files):
    layers = list(dict.fromkeys(name for result in results for name in result["layers"]))
    lines = [*hows(results)]
    for layer in layers:
        here = [r for r in results if layer in r["layers"]]
        lines += ["", f"## {layer}", "", here[0]["layers"][layer]["why"], ""]
        noise, out = {}, {}
        for result in here:
            busy = rows_of_a_busy_machine(result)
            rows = [r for kind in ("ablate", "ladder") for r in result["layers"][layer][kind]]
            out[result["threads"]] = {id(r) for r in rows if id(r) in busy}
            noise[result["threads"]] = quotients([r for r in rows if id(r) not in busy])
            if noise[result["threads"]]:
                lines += [f"With {result['threads']} thread{'s' * (result['threads'] > 1)} the same kernel, measured twice, "
                          f"differed by {noise[result['threads']]:.2f}x.  "]
        lines += [""] if lines[-1] else []
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
                    if id(row) in out[threads]:
                        share, note = None, "ran while others used the machine: no factor"
                        if kind == "ladder" and not name.startswith("gemm_"):
                            before.pop(threads, None)
                    elif name == "as planned":
                        factor = share / best if best else None
                        if factor and factor < 0.97:
                            counting = [r for r in result["layers"][layer][kind] if id(r) not in out[threads]]
                            note = "is behind: " + planned_note(counting, row)
                    elif kind == "ladder":
                        factor = share / before[threads] if before.get(threads) and share else None
                        best = max(best, share)
                        if not name.startswith("gemm_"):  # weights in 16 bits: beside the product, not a step on the way
                            before[threads] = share
                        if factor and factor < 0.97:
                            note = "loses: " + LOSES.get(name, "why was not found out")
                    else:
                        if name == "all on":
                            before[threads] = share
                        factor = before[threads] / share if before.get(threads) and share and name != "all on" else None
                        if factor and factor < 1.05 and name in OFF:
                            note = "brings next to nothing here: " + OFF[name]
                    if note and factor:
                        note = judged(factor, note, noise[threads])
                    if note:
                        notes.setdefault((name, note), []).append(str(threads))
                    moved = list(row["predicted_bytes"].values())
                    rows.append([name, row["threads"], f"{row['gflops']:.1f}", number(share, 1), number(factor),
                                 f"{(moved[1] if len(moved) > 1 else 0) / 1e6:.1f}", f"{moved[-1] / 1e6:.1f}"])
            order = list(dict.fromkeys(r[0] for r in rows))
            rows.sort(key=lambda r: (order.index(r[0]), r[1]))
            head = "switched off" if kind == "ablate" else "step"
            lines += table([head, "threads", "GFLOP/s", "% of peak", "brings x" if kind == "ablate" else "x", "MB beyond L1",
                            "MB from DRAM"], rows)
            lines += ["", *[f"- {name} ({' and '.join(at)} thread{'s' * (at != ['1'])}) {note}."
                            for (name, note), at in notes.items()]]
            if kind == "ablate":
                lines += [f"- {name} is not there: {why}." for name, why in absent.items()]
            lines += [""] if lines[-1] else []
    return lines[:-1]
