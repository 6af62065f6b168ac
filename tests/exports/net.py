"""Small networks written as exporters write them: a Net collects nodes, constants and inputs with values from a fixed seed, and
`exported` registers a function that builds one. Each is made with a symbolic first axis and with a fixed one."""
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

EXPORTS = {}  # by name
TOLERANCE = 1e-4  # of an output, as a share of its largest value


class Export:
    def __init__(self, function, opset, producer, tolerance, step, refused, options):
        self.function, self.opset, self.producer, self.options = function, opset, producer, options
        self.tolerance, self.step, self.refused = tolerance, step, refused


def exported(opset, producer, tolerance=TOLERANCE, step=0.0, refused=(), **options):
    """`options`: of the Net. `step`: outputs are rounded to multiples of it, of which two engines may take neighbours.
    `refused`: operators that are not supported; opening the model has to name them all."""
    def register(function):
        EXPORTS[function.__name__] = Export(function, opset, producer, tolerance, step, refused, options)
        return function
    return register


class Net:
    """Operators are methods: net.Conv(x, w, pads=[1] * 4) adds a node and gives its output's name, with outputs=2 a list.
    Numbers, lists and arrays as inputs become constants: int64 and float32, as nodes `Constant` with `nodes`, else as
    initializers."""

    def __init__(self, name, opset, producer, batch, nodes=False, ir=8, named=False, outer=None):
        self.name, self.opset, self.producer, self.N = name, opset, producer, batch
        self.as_nodes, self.ir, self.named = nodes, ir, named
        self.rng = outer.rng if outer else np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes, self.initializers, self.inputs, self.functions, self.domains = [], [], [], [], {}
        self.metadata, self.outer = {}, outer
        self.values = {}
        self.count = 0

    def fresh(self, op):
        top = self.outer or self
        top.count += 1
        return f"{top.producer[0]}/{op}_{top.count}:0"

    def input(self, name, *shape, dtype=np.float32, low=-1.0, high=1.0):
        self.inputs.append((name, shape, np.dtype(dtype), low, high))
        return name

    def constant(self, value, dtype=None):
        array = np.asarray(value)
        if dtype is None and array.dtype == np.float64:
            array = array.astype(np.float32)
        array = array if dtype is None else array.astype(dtype)
        name = self.fresh("Const")
        if self.as_nodes:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def w(self, *shape, spread=None, dtype=np.float32):
        """Weights as an initializer, of a size that keeps values where they are."""
        fan = int(np.prod(shape[1:])) or 1
        array = self.rng.standard_normal(shape) * (spread or 1 / np.sqrt(fan))
        name = self.fresh("weight")
        (self.outer or self).initializers.append(numpy_helper.from_array(array.astype(dtype), name))
        return name

    def positive(self, *shape):
        """Weights between 0.5 and 1.5, as variances are."""
        name = self.fresh("weight")
        array = self.rng.uniform(0.5, 1.5, shape).astype(np.float32)
        (self.outer or self).initializers.append(numpy_helper.from_array(array, name))
        return name

    def __getattr__(self, op):
        if not op[0].isupper() and not op.startswith("aten"):
            raise AttributeError(op)

        def add(*inputs, outputs=1, domain="", **attributes):
            names = ["" if i is None else i if isinstance(i, str) else self.constant(i) for i in inputs]
            given = [self.fresh(op) for _ in range(outputs)]
            title = f"/{op.lower()}/{op}_{(self.outer or self).count}" if self.named else ""
            self.nodes.append(helper.make_node(op, names, given, title, domain=domain, **attributes))
            return given[0] if outputs == 1 else given
        return add

    def body(self, name, inputs, build):
        """A subgraph: `inputs` (type, shape) each; build(net, *names) gives (name, type) of each output."""
        inner = Net(self.name, self.opset, self.producer, self.N, self.as_nodes, outer=self.outer or self)
        names = [self.fresh("body") for _ in inputs]
        outputs = build(inner, *names)
        infos = [helper.make_tensor_value_info(n, t, s) for n, (t, s) in zip(names, inputs)]
        return helper.make_graph(inner.nodes, name, infos, [helper.make_tensor_value_info(n, t, None) for n, t in outputs],
                                 inner.initializers)

    def function(self, domain, name, inputs, outputs, build, attributes=()):
        """A function of the model; build(net) adds its nodes over these names."""
        inner = Net(self.name, self.opset, self.producer, self.N, True, outer=self.outer or self)
        build(inner)
        others = sorted({node.domain for node in inner.nodes} - {""})
        domains = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in others)]
        self.functions.append(helper.make_function(domain, name, inputs, outputs, inner.nodes, domains, list(attributes)))
        self.domains[domain] = 1

    def named_output(self, name, given):
        """The last nodes' output under the name that users know."""
        self.nodes.append(helper.make_node("Identity", [given], [name]))
        return name

    def model(self, outputs):
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), list(shape))
                  for name, shape, dtype, _, _ in self.inputs]
        infos = []
        for output in outputs:
            name, kind = output if isinstance(output, tuple) else (output, TensorProto.FLOAT)
            infos.append(helper.make_tensor_value_info(name, kind, None))
        if self.ir < 4:  # constants are inputs with a default there
            inputs += [helper.make_tensor_value_info(i.name, i.data_type, list(i.dims)) for i in self.initializers]
        graph = helper.make_graph(self.nodes, self.name, inputs, infos, self.initializers)
        domains = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, v) for d, v in self.domains.items()]
        model = helper.make_model(graph, opset_imports=domains, functions=self.functions, producer_name=self.producer)
        model.ir_version = max(self.ir, 10 if self.opset > 20 else self.ir)
        helper.set_model_props(model, self.metadata)
        return model

    def feeds(self, batch):
        arrays = {}
        for name, shape, dtype, low, high in self.inputs:
            sizes = [batch if s == "N" else self.sizes.get(s, s) if isinstance(s, str) else s for s in shape]
            if dtype.kind == "f":
                drawn = self.rng.uniform(low, high, sizes)
            else:
                drawn = self.rng.integers(int(low), int(high) + 1, sizes)
            arrays[name] = drawn.astype(dtype)
        return arrays

    sizes = {"H": 24, "W": 20, "T": 7}  # of other open axes


def build(name, batch):
    """(model, net) of an export; `batch` "N" or a number."""
    export = EXPORTS[name]
    net = Net(name, export.opset, export.producer, batch, **export.options)
    outputs = export.function(net)
    model = net.model(outputs if isinstance(outputs, list) else [outputs])
    given = peer_of(model).run(None, net.feeds(2))
    for info, value in zip(model.graph.output, given):  # exporters declare how many axes there are
        info.type.tensor_type.shape.SetInParent()
        for axis in range(value.ndim):
            info.type.tensor_type.shape.dim.add().dim_param = f"{info.name}_{axis}"
    onnx.checker.check_model(model)
    return model, net


def peer_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
