"""docs/patterns.md: of each layer what its schedule keeps at each level of memory, then what each pattern and each step of the
ladder brings, with a reason for what does not - where the data does not contradict it."""
from tables.text import disturbed, hows, number, table, threads_of

# (title, convolution, why it is here)
LAYERS = [("64 to 64 channels, 3x3, 56x56", "ic64ih56oc64oh56kh3ph1", "Bound by products; everything fits the L2."),
          ("256 to 256 channels, 3x3, 14x14", "ic256ih14oc256oh14kh3ph1",
           "2.4 MB of weights: more than an L2, so loops must be cut."),
          ("512 to 2048 channels, 1x1, 7x7", "ic512ih7oc2048oh7kh1",
           "4 MB of weights for 49 pixels: each is used by eight tiles and comes from the L3, or from DRAM. Fetching ahead has "
           "most to win here."),
          ("16 to 64 channels, 1x1, 256x256", "ic16ih256oc64oh256kh1",
           "Sixteen products for each number of 16.8 MB that is written: bound by memory, so a pass of its own for bias and "
           "activation must show."),
          ("64 to 64 channels, 1x1, 224x224", "ic64ih224oc64oh224kh1", "12.8 MB in, 12.8 MB out, few products for each.")]

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


def machine_of(result):
    return result["certificate"]["cpu"]["architecture"]


def column_of(result):
    return f"{machine_of(result)}, {threads_of(result)}"


def named(results, several):
    """The machines and threads that a sentence holds for: "zen4 with 1 and 2 threads"; threads alone of a single machine."""
    machines = {}
    for result in results:
        machines.setdefault(machine_of(result), []).append(str(result["threads"]))
    said = [(f"{machine} with " if several else "") + f"{' and '.join(at)} thread{'s' * (at != ['1'])}"
            for machine, at in machines.items()]
    return ", ".join(said)


def levels_of(root, layer):
    """What `sparkle explain --levels` says of the layer, which tests/command/command_levels_test.cc holds the program to."""
    for name, conv, _ in LAYERS:
        if name == layer:
            path = root / "tests" / "golden_levels" / f"{conv}.txt"
            if not path.is_file():
                raise ValueError(f"{path.relative_to(root)} is not there; scripts/update_golden_plans writes it")
            return ["", "```text", *path.read_text(encoding="utf-8").splitlines(), "```"]
    return []


class Judge:
    """Factors of one kind of rows of one layer and result, and what is said of them."""

    def __init__(self, result, layer, kind):
        self.rows, self.kind = result["layers"][layer][kind], kind
        busy = rows_of_a_busy_machine(result)
        self.out = {id(r) for r in self.rows if id(r) in busy}
        self.noise = quotients([r for k in ("ablate", "ladder") for r in result["layers"][layer][k] if id(r) not in busy])
        self.before, self.best = None, 0

    def judge(self, name, row):
        """(share, factor, note) of the next row. By shares of the peak probed beside each row: a core may be faster a second
        later."""
        share, factor, note = row["percent_of_peak"], None, None
        beside = name.startswith("gemm_")  # weights in 16 bits: beside the product, not a step on the way
        if id(row) in self.out:
            share, note = None, "ran while others used the machine: no factor"
            if self.kind == "ladder" and not beside:
                self.before = None
        elif name == "as planned":
            factor = share / self.best if self.best else None
            if factor and factor < 0.97:
                note = "is behind: " + planned_note([r for r in self.rows if id(r) not in self.out], row)
        elif self.kind == "ladder":
            factor = share / self.before if self.before and share else None
            self.best = max(self.best, share)
            if not beside:
                self.before = share
            if factor and factor < 0.97:
                note = "loses: " + LOSES.get(name, "why was not found out")
        else:
            if name == "all on":
                self.before = share
            factor = self.before / share if self.before and share and name != "all on" else None
            if factor and factor < 1.05 and name in OFF:
                note = "brings next to nothing here: " + OFF[name]
        return share, factor, judged(factor, note, self.noise) if note and factor else note


def kind_lines(kind, layer, here):
    """The table of one kind of rows: a pair of columns for each machine and number of threads, and what is to be said of it."""
    cells, moved, notes, absent = {}, {}, {}, {}
    for at, result in enumerate(here):
        judge = Judge(result, layer, kind)
        for row in judge.rows:
            name = row.get("level") or row["without"]
            if "absent" in row:
                absent.setdefault(name, row["absent"])
                continue
            share, factor, note = judge.judge(name, row)
            cells.setdefault(name, [("-", "-")] * len(here))[at] = (number(share, 1), number(factor))
            bytes_of = list(row["predicted_bytes"].values())
            moved.setdefault(name, [f"{(bytes_of[1] if len(bytes_of) > 1 else 0) / 1e6:.1f}", f"{bytes_of[-1] / 1e6:.1f}"])
            if note:
                notes.setdefault((name, note), []).append(result)
    heads = ["switched off" if kind == "ablate" else "step"]
    for result in here:
        heads += [f"{column_of(result)}: % of peak", "brings x" if kind == "ablate" else "x"]
    rows = [[name, *[cell for pair in cells[name] for cell in pair], *moved[name]] for name in cells]
    several = len({machine_of(result) for result in here}) > 1
    lines = ["", *table([*heads, "MB beyond L1", "MB from DRAM"], rows), ""]
    lines += [f"- {name} ({named(at, several)}) {note}." for (name, note), at in notes.items()]
    if kind == "ablate":
        lines += [f"- {name} is not there: {why}." for name, why in absent.items()]
    return lines if lines[-1] else lines[:-1]


def make_patterns(root, results, files):
    layers = list(dict.fromkeys(name for result in results for name in result["layers"]))
    lines = [*hows(results)]
    for layer in layers:
        here = [r for r in results if layer in r["layers"]]
        lines += ["", f"## {layer}", "", here[0]["layers"][layer]["why"], *levels_of(root, layer)]
        noise = [(Judge(r, layer, "ablate").noise, r) for r in here]
        said = [f"{n:.2f}x ({column_of(r)})" for n, r in noise if n]
        lines += ["", f"The same kernel, measured twice, differed by {', '.join(said)}."] if said else []
        for kind in ("ablate", "ladder"):
            lines += kind_lines(kind, layer, here)
    return lines
