"""Tables of streams: what a pipeline brings on one device, and what several bring together."""
from tables.text import hows, ms, table


def make_pipelines(root, results, files):
    alone, together = [], []
    for result in results:
        for r in result["rows"]:
            if "together_ms" in r:
                shares = ", ".join(f"{name} {share:.0f} %" for name, share in r["shares_percent"].items())
                stream = [ms(r["stream_ms"]), f"{r['stream_over_best_alone']:.2f}"] if "stream_ms" in r else ["", ""]
                together.append([r["model"], r["device"], *stream, ms(r["together_ms"]), f"{r['together_over_best_alone']:.2f}",
                                 f"{r['efficiency_percent']:.0f} %", shares])
            else:
                alone.append([r["model"], r["device"], ms(r["synchronous_ms"]), ms(r["pipelined_ms"]),
                              f"{r['pipelined_over_synchronous']:.2f}", f"{r['device_busy_percent']:.0f} %"])
    return [*hows(results), "",
            *table(["model", "device", "one by one, ms", "pipelined, ms", "times as many", "device busy"], alone, 2), "",
            *table(["model", "devices", "a stream, ms", "of the best alone", "all together, ms", "of the best alone",
                    "of the rates alone", "items of each"],
                   together, 2)]
