#!/usr/bin/env python3
"""The ONNX project's light models as test directories: tests/light_models.py SOURCE TARGET. SOURCE holds NAME.onnx and
NAME_output_0.pb, whole architectures of the model zoo whose weights are constants, published without inputs. TARGET gets
NAME/NAME.onnx and NAME/test_data_set_0/{input_0,output_0}.pb, for `sparkle verify`. The input is the one that the onnx
package's runner gives them: element i of N, row-major, is i / N, computed in double and rounded to float32."""
import array
import pathlib
import shutil
import sys

SHAPE = (1, 3, 224, 224)  # of every light model's one input
FLOAT, RAW_DATA, DIMS, DATA_TYPE = 1, 9, 1, 2  # TensorProto: the element type, and the numbers of its fields


def varint(value):
    """The variable-length integer of protobuf: seven bits a byte, lowest first, the top bit says that more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tensor(shape, values):
    """A TensorProto of float32 elements; `values` are rounded to float32."""
    packed = array.array("f", values)
    if sys.byteorder == "big":
        packed.byteswap()  # raw_data is little-endian
    raw = packed.tobytes()
    integer = b"".join(varint(DIMS << 3) + varint(d) for d in shape) + varint(DATA_TYPE << 3) + varint(FLOAT)
    return integer + varint(RAW_DATA << 3 | 2) + varint(len(raw)) + raw  # 2: a field that its length precedes


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: tests/light_models.py SOURCE TARGET")
    source, target = map(pathlib.Path, sys.argv[1:])
    models = sorted(source.glob("*.onnx"))
    if not models:
        sys.exit(f"{source}: there are no .onnx files in this folder; give the one that holds the light models.")
    count = 1
    for d in SHAPE:
        count *= d
    given = tensor(SHAPE, (i / count for i in range(count)))
    shutil.rmtree(target, ignore_errors=True)
    for model in models:
        expected = model.with_name(model.stem + "_output_0.pb")
        if not expected.is_file():
            sys.exit(f"{expected}: this file with the expected output of {model.name} is missing.")
        data = target / model.stem / "test_data_set_0"
        data.mkdir(parents=True)
        shutil.copyfile(model, target / model.stem / model.name)
        (data / "input_0.pb").write_bytes(given)
        shutil.copyfile(expected, data / "output_0.pb")
    print(f"{len(models)} models in {target}")


if __name__ == "__main__":
    main()
