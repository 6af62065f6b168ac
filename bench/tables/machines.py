"""The table of bench/many_machines.py: rows a second by each way to have them answered, what it takes to start, and from how
many rows on a way is the faster one with its start."""
from tables.text import hows, ms, table

WAYS = {"session": "a session with all threads", "pipeline": "`sparkle.Pipeline`", "pool": "a pool of processes, a thread each",
        "dask": "Dask, a process a core", "ray_one": "Ray Data, one worker with all threads",
        "ray_each": "Ray Data, a worker a core"}


def paying(row, session):
    """From how many rows on a way has answered before one session has, both from nothing; None where it never has."""
    gained = 1 / session["rows_per_s"] - 1 / row["rows_per_s"]
    return (row["start_s"] - session["start_s"]) / gained if gained > 0 else None


def rounded(count):
    """To one digit, as a number that is read: 20,000."""
    return f"{int(float(f'{max(count, 1):.1g}')):,}"


def make_many_machines(root, results, files):
    rows, said = [], []
    for result in results:
        for model in dict.fromkeys(r["model"] for r in result["rows"]):
            ways = {r["way"]: r for r in result["rows"] if r["model"] == model}
            session = ways["session"]
            for way, r in ways.items():
                rows.append([model, WAYS[way], f"{r['start_s']:.2f}", f"{r['rows_per_s']:.0f}",
                             f"{r['rows_per_s'] / session['rows_per_s']:.2f}", ms(r["cpu_ms_per_row"]),
                             f"{r['memory_mb']:.0f}"])
            pays = {way: paying(r, session) for way, r in ways.items() if way != "session"}
            told = [f"{WAYS[way]} {'always' if count <= 0 else f'from {rounded(count)} rows on'}" if count is not None
                    else f"{WAYS[way]} never" for way, count in pays.items()]
            said.append(f"- {model}: {'; '.join(told)}.")
    heads = ["model", "way", "first answer, s", "rows/s", "of one session", "CPU a row, ms", "memory, MB"]
    return [*hows(results), "", *table(heads, rows, 2), "",
            "From how many rows on a way is done before one session that starts at the same time:", "",
            *said]
