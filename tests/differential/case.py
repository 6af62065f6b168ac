"""A case: a model, what it is fed, and how Sparkle is asked to run it. Operator families add their generators by @covers."""
from dataclasses import dataclass, field

import onnx


@dataclass
class Options:
    """Of one run of Sparkle. `compiled`: through a compiled file; `fusion`: by the command, which alone can force it."""
    threads: int = 1
    algorithm: str = ""
    compiled: bool = False
    fusion: str = ""

    def text(self):
        parts = [f"threads={self.threads}", self.algorithm and f"algorithm={self.algorithm}", self.compiled and "compiled",
                 self.fusion and f"fusion={self.fusion}"]
        return " ".join(p for p in parts if p)


@dataclass
class Case:
    seed: int
    kind: str  # operator, graph, pattern
    name: str  # the operator, or what the graph is
    model: onnx.ModelProto
    feeds: list  # of dictionaries name -> array: run one after another in one session
    options: Options = field(default_factory=Options)

    @property
    def opset(self):
        return next(o.version for o in self.model.opset_import if not o.domain)


@dataclass
class Family:
    make: object  # function(draw, operator) -> names of outputs
    lowest: int  # opset


FAMILIES = {}  # operator -> Family


def covers(*operators, lowest=1):
    """Registers a generator of cases for these operators, from opset `lowest` on."""
    def register(function):
        for operator in operators:
            assert operator not in FAMILIES, operator
            FAMILIES[operator] = Family(function, lowest)
        return function
    return register
