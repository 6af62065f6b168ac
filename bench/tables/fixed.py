"""The table of bench/fix_ratios.py: what fixing models was predicted to bring, beside what it brought."""
import statistics

from tables.text import hows, ms, table


def make_fixed(root, results, files):
    rows, missed = [], []
    for r in results:
        unit, threads = r["settings"]["unit"] or "the widest", r["settings"]["threads"]
        for n in r["networks"]:
            if "error" in n:
                rows.append([n["network"], unit, threads, "-", "not fixed", "", "", "", ""])
                continue
            off = [layer["predicted_ratio"] / layer["measured_ratio"] - 1 for layer in n["layers"]]
            rows.append([n["network"], unit, threads, len(off), *[ms(n[f"measured_{when}_ms"]) for when in ("before", "after")],
                         *[f"{n[kind + '_after_ms'] / n[kind + '_before_ms']:.2f}" for kind in ("predicted", "measured")],
                         f"{100 * statistics.median(map(abs, off)):.0f}" if off else "-"])
        everything = [(layer, n["network"]) for n in r["networks"] for layer in n["layers"]]
        worst = sorted(everything, key=lambda e: -abs(e[0]["predicted_ratio"] / e[0]["measured_ratio"] - 1))
        listed = [f"{network}/{layer['layer']} {layer['predicted_ratio']:.2f} for {layer['measured_ratio']:.2f}"
                  for layer, network in worst if abs(layer["predicted_ratio"] / layer["measured_ratio"] - 1) > 0.2]
        missed.append(f"{threads} thread{'s' * (threads > 1)}, {unit}: {r['layers']} layers, median error "
                      f"{r['median_error_percent']:.0f} %, rank correlation {r['rank_correlation']:.2f}. "
                      f"Beyond 20 % ({len(listed)}): {'; '.join(listed)}.  ")
    heads = ["network", "unit", "threads", "layers", "fp32, ms", "int8, ms", "ratio predicted", "ratio measured", "error, %"]
    return [*hows(results), "", *table(heads, rows, 2), "", *missed]
