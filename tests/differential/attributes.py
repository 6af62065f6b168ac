"""Attributes of a node as Python values, by name."""
from onnx import helper


def attributes_of(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}
