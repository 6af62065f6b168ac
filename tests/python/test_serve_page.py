"""The page of `sparkle serve` in a browser: a picture is chosen, and the answer stands there; numbers are those of the same
pixels sent by hand."""
import json
import struct
import urllib.request
import zlib

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from browser import CHROMIUM, Browser
from serving import Server, needs_serve


def write_png(path, pixels):
    H, W, _ = pixels.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", W, H, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def classifier(path):
    """Means of the three colours, a product, seven classes with names; values from 0 to 1."""
    weights = np.random.default_rng(3).standard_normal((3, 7)).astype(np.float32) * 4
    nodes = [helper.make_node("GlobalAveragePool", ["image"], ["m"]), helper.make_node("Flatten", ["m"], ["f"]),
             helper.make_node("MatMul", ["f", "w"], ["scores"])]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 32, 24])],
                          [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 7])],
                          [numpy_helper.from_array(weights, "w")]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"names": str({i: f"<b>class {i}</script>" for i in range(7)}),
                                   "Image.NominalPixelRange": "Normalized_0_1"})
    save(model, path)
    return weights


def doubler(path):
    nodes = [helper.make_node("Add", ["image", "image"], ["twice"])]
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3, "H", "W"]) for n in ("image", "twice")]
    save(helper.make_model(helper.make_graph(nodes, "g", tensors[:1], tensors[1:]), opset_imports=[helper.make_opsetid("", 17)],
                           ir_version=8), path)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    needs_serve()
    if not CHROMIUM:
        pytest.skip("no chromium here; scripts/setup test installs it")
    folder = tmp_path_factory.mktemp("page")
    weights = classifier(folder / "classes.onnx")
    doubler(folder / "twice.onnx")
    pixels = np.random.default_rng(5).integers(0, 256, (32, 24, 3), dtype=np.uint8)
    write_png(folder / "picture.png", pixels)
    (folder / "no.png").write_bytes(b"no picture")
    server, browser = Server(folder), Browser()
    yield folder, server, browser, pixels, weights
    assert not browser.errors
    browser.close()
    server.end()


def test_a_picture_is_classified(page):
    folder, server, browser, pixels, weights = page
    browser.open(f"http://{server.address}/")
    assert browser.value("document.querySelectorAll('#models tr').length") == 3
    assert browser.value("[...document.getElementById('model').options].map(o => o.text).join()") == \
        "classes, version 1,twice, version 1"
    browser.choose("#file", folder / "picture.png")
    browser.wait("document.querySelector('#answer table.classes') !== null")
    rows = browser.value("[...document.querySelectorAll('#answer tr')].map(r => [...r.cells].map(c => c.textContent))")[1:]
    scores = (pixels / 255).mean((0, 1)) @ weights
    shares = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    order = np.argsort(-scores)[:5]
    assert [int(row[0]) for row in rows] == list(order)
    assert [row[1] for row in rows] == [f"<b>class {c}</script>" for c in order]  # as text
    for row, c in zip(rows, order):
        assert abs(float(row[2].rstrip(" %")) - 100 * shares[c]) <= 0.02
    # The table follows.
    browser.wait("document.querySelector('#models tr:nth-child(2) td:nth-child(5)').textContent === '1'")


def test_numbers_where_there_are_no_classes(page):
    folder, server, browser, pixels, _ = page
    browser.open(f"http://{server.address}/")
    browser.value("document.getElementById('model').value = 1")
    browser.choose("#file", folder / "picture.png")
    browser.wait("document.querySelectorAll('#answer tr').length === 3")
    rows = browser.value("[...document.querySelectorAll('#answer tr')].map(r => [...r.cells].map(c => c.textContent))")
    assert rows[0] == ["values", str(pixels.size)]
    wanted = pixels[:, :, 0].ravel()[:16] / 255 * 2  # the first of the red plane
    np.testing.assert_allclose([float(v) for v in rows[2][1].split(",")], wanted, atol=1e-4)


def test_the_roofline_is_shown(page):
    """Predicted at once, measured on request; a narrow screen scrolls inside of tables alone."""
    _, server, browser, _, _ = page
    browser.open(f"http://{server.address}/")
    first = "document.querySelector('#reports details')"
    assert browser.value("document.querySelectorAll('#reports details').length") == 2
    browser.wait(f"{first}.querySelectorAll('table.layers tbody tr').length > 0")
    assert "predicted" in browser.value(f"{first}.querySelector('.short').textContent")
    assert "nothing was run" in browser.value(f"{first}.querySelector('.basis').textContent")
    said = json.load(urllib.request.urlopen(f"http://{server.address}/v2/models/classes/report", timeout=30))
    rows = browser.value(f"[...{first}.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    assert [row[0] for row in rows] == [step["name"] for step in said["steps"]]
    assert [row[7] for row in rows] == [step["bound"] for step in said["steps"]]
    browser.value(f"{first}.querySelector('button').click()")
    browser.wait(f"/, measured$/.test({first}.querySelector('.short').textContent)")
    assert json.load(urllib.request.urlopen(f"http://{server.address}/v2/models/classes/report", timeout=30))["measured"]
    # Sizes that are open come from the latest request; before one the reason stands there.
    second = "document.querySelectorAll('#reports details')[1]"
    browser.value(f"{second}.open = true")
    said = f"{second}.querySelector('.said').textContent.includes('send one first')"
    browser.wait(f"!!{second}.querySelector('table.layers') || {said}")
    for width in (320, 360, 1200):
        browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=700, deviceScaleFactor=1, mobile=width < 600)
        for address in ("", "v2/models/classes/report.html"):
            browser.open(f"http://{server.address}/{address}")
            assert browser.value("document.documentElement.scrollWidth") <= width, address
            assert browser.value("document.querySelectorAll('h1').length") > 0
        assert browser.value("document.querySelectorAll('#t0 table.layers tbody tr').length") == len(rows)
        tabs = browser.value("[...document.querySelectorAll('nav a')].map(a => a.textContent).join()")
        assert tabs == "layers,what to change"
    browser.ask("Emulation.clearDeviceMetricsOverride")


def test_what_is_no_picture_is_said(page):
    folder, server, browser, _, _ = page
    browser.open(f"http://{server.address}/")
    browser.choose("#file", folder / "no.png")
    browser.wait("/decoded|source image/i.test(document.getElementById('answer').textContent)")


def test_it_is_complete_in_itself(page):
    _, server, _, _, _ = page
    text = urllib.request.urlopen(f"http://{server.address}/", timeout=30).read().decode()
    assert "http://" not in text and "https://" not in text and "<link" not in text and " src=" not in text
    forms = json.loads(text.split('id="forms">')[1].split("</script>")[0])
    assert forms[0]["labels"][0] == "<b>class 0</script>" and forms[0]["width"] == 24 and forms[0]["height"] == 32
