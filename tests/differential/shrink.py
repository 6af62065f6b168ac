"""Makes a failing case smaller: fewer nodes, as long as the verdict remains; saves it as a test directory that
`sparkle verify` runs, with what was asked of the run and how to repeat it beside."""
import copy
import pathlib

import numpy as np
import onnx
from onnx import numpy_helper

import judge
from case import Options
from draw import elem_type, inferred_types
from exact import exact_values

TRIES = 60


def same_failure(case):
    """Whether the case still fails, and not because of the shrinking."""
    try:
        return judge.judge(case).outcome == "failed"
    except Exception:
        return False


def cut(case, outputs, fed):
    """The case with these outputs, tensors of `fed` (name -> arrays per feed) given from outside; None where nothing is
    left."""
    model = copy.deepcopy(case.model)
    graph = model.graph
    makers = {o: n for n in graph.node for o in n.output}
    needed, kept, pending = set(), [], list(outputs)
    while pending:
        name = pending.pop()
        if not name or name in needed:
            continue
        needed.add(name)
        if name in makers and name not in fed and makers[name] not in kept:
            kept.append(makers[name])
            pending += makers[name].input
    nodes = [n for n in graph.node if n in kept]
    if not nodes:
        return None
    types = inferred_types(case.model)
    types.update({o.name: o.type.tensor_type.elem_type for o in graph.output})
    inputs = [i for i in graph.input if i.name in needed]
    for name in fed:
        if name in needed:
            inputs.append(onnx.helper.make_tensor_value_info(name, elem_type(fed[name][0].dtype), fed[name][0].shape))
    results = []
    for name in outputs:
        value = onnx.ValueInfoProto(name=name)
        value.type.tensor_type.elem_type = types[name]
        results.append(value)
    constants = [c for c in graph.initializer if c.name in needed]
    for field, values in (("node", nodes), ("input", inputs), ("output", results), ("initializer", constants)):
        values = [copy.deepcopy(v) for v in values]
        del getattr(graph, field)[:]
        getattr(graph, field).extend(values)
    names = {i.name for i in graph.input}
    feeds = [{**{k: v for k, v in f.items() if k in names}, **{k: fed[k][at] for k in fed if k in names}}
             for at, f in enumerate(case.feeds)]
    return type(case)(case.seed, case.kind, case.name, model, feeds, case.options)


def smaller(case):
    """Candidates, the boldest first."""
    nodes = list(case.model.graph.node)
    for options in (Options(), Options(algorithm=case.options.algorithm), Options(threads=case.options.threads)):
        if options != case.options:
            yield type(case)(case.seed, case.kind, case.name, case.model, case.feeds, options)
    if len(case.feeds) > 1:
        for feeds in case.feeds:
            yield type(case)(case.seed, case.kind, case.name, case.model, [feeds], case.options)
    if len(case.model.graph.output) > 1:
        for output in case.model.graph.output:
            yield cut(case, [output.name], {})
    if len(nodes) < 2:
        return
    outputs = [o.name for o in case.model.graph.output]
    for node in nodes[:-1]:
        yield cut(case, [n for n in node.output if n][:1], {})
    values = [exact_values(case.model, feeds) for feeds in case.feeds]
    for node in reversed(nodes[:-1]):
        name = node.output[0]
        arrays = [v[name].value.astype(v[name].dtype) for v in values]
        yield cut(case, outputs, {name: arrays})


def shrunk(case):
    tries, again = 0, True
    while again and tries < TRIES:
        again = False
        for candidate in smaller(case):
            tries += 1
            if tries > TRIES:
                break
            if candidate is not None and same_failure(candidate):
                case, again = candidate, True
                break
    return case


def saved(case, folder, verdict):
    """Shrinks, writes FOLDER/SEED_NAME and says where."""
    least = shrunk(case) if same_failure(case) else case
    place = pathlib.Path(folder) / f"{case.seed}_{case.name.replace('.', '_').replace(' ', '_')}"
    data = place / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (place / "model.onnx").write_bytes(least.model.SerializeToString())
    names = [i.name for i in least.model.graph.input if i.name in least.feeds[0]]
    for at, name in enumerate(names):
        write(data / f"input_{at}.pb", least.feeds[0][name], name)
    try:
        values = exact_values(least.model, least.feeds[0])
        for at, output in enumerate(least.model.graph.output):
            value = values[output.name]
            with np.errstate(all="ignore"):
                write(data / f"output_{at}.pb", value.value.astype(value.dtype), output.name)
    except Exception as e:
        (place / "expected.txt").write_text(f"nothing says what to expect: {e}\n")
    word = "" if case.kind != "operator" else f" --operator {case.name}"
    (place / "case.txt").write_text(
        f"seed {case.seed}, {case.kind} {case.name}, opset {case.opset}\noptions: {least.options.text()}\n{verdict.detail}\n"
        f"again: scripts/differential --case {case.seed}{word if case.kind == 'operator' else ''}\n")
    nodes = ", ".join(n.op_type for n in least.model.graph.node)
    return f"shrunk to {nodes} ({least.options.text()}) in {place}"


def write(path, array, name):
    path.write_bytes(numpy_helper.from_array(np.asarray(array), name).SerializeToString())
