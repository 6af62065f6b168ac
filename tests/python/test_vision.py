"""sparkle.vision: the answers of `sparkle run --task`, from every kind of picture, as plain objects to be drawn and pickled."""
import io
import json
import logging
import os
import pathlib
import pickle
import subprocess

import numpy as np
import pytest

import sparkle
from sparkle import vision

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = pathlib.Path(os.environ.get("SPARKLE_COMMAND", ROOT / "build" / "release" / "sparkle"))
DATA = ROOT.parent / "shared" / "data"
MODEL, PICTURE = ROOT / "models" / "upscale2x.onnx", ROOT / "models" / "test_picture.png"
shared = pytest.mark.skipif(not (DATA / "models").is_dir(), reason="../shared/data is not here")
command = pytest.mark.skipif(not COMMAND.is_file(), reason="the command is not built here")


def model(name):
    return DATA / "models" / name / f"{name}.onnx"


def image(name):
    return DATA / "images" / name


def small(channels=3, height=24, width=32):
    return np.random.default_rng(3).integers(0, 256, (height, width, channels), dtype=np.uint8)


@pytest.fixture(scope="module")
def upscale():
    return vision.Task(MODEL, threads=2)


def said(*words):
    words = [COMMAND, "run", *map(str, words), "--json", "--threads", "2"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout)


@shared
@command
@pytest.mark.parametrize("name, photograph, labels, task", [
    ("yolox-nano", "cat_720p.jpg", "coco_80.txt", "detect"), ("yolox-nano", "coffee.png", "coco_80.txt", "detect"),
    ("ultraface-rfb-320", "astronaut.png", None, "detect"), ("super-resolution-10", "chelsea.png", None, "upscale"),
    ("deeplabv3-mobilenetv2-257", "chelsea.png", "voc_21.txt", "segment"),
    ("squeezenet1.1", "hummingbird.jpg", "imagenet_synset_words.txt", "classify")])
def test_answers_are_the_commands(name, photograph, labels, task):
    names = DATA / "labels" / labels if labels else None
    asked = "classify" if task == "classify" else None  # the command shows one row of classes without calling it a task
    words = ["--labels", names] if names else []
    wanted = said(model(name), image(photograph), *words, *(["--task", asked] if asked else []))["answer"]
    found = vision.Task(model(name), asked, labels=names, threads=2)(image(photograph))
    assert found.task == task and found.json == wanted


@shared
def test_answers_are_plain_objects(caplog):
    with caplog.at_level(logging.INFO, "sparkle"):
        task = vision.Task(str(model("yolox-nano")), labels=str(DATA / "labels" / "coco_80.txt"), threads=2)
    assert task.task == "detect" and task.why.startswith("guessed from output 'output'")
    assert "yolox, BGR" in task.preprocessing and "a guess" in task.preprocessing
    assert "task detect, guessed from" in caplog.text and task.labels[15] == "cat"
    found = task(image("coffee.png"))
    assert [b.label for b in found.boxes] == ["cup", "dining table"] or [b.index for b in found.boxes] == [41, 60]
    box = found.boxes[0]
    assert 0 <= box.x0 < box.x1 <= 600 and 0 <= box.y0 < box.y1 <= 400 and 0.85 < box.score <= 1
    drawn = vision.draw(image("coffee.png"), found)
    assert drawn.dtype == np.uint8 and drawn.shape[0] > 400 and drawn.shape[1:] == (600, 3)
    again = pickle.loads(pickle.dumps(found))
    assert again.boxes == found.boxes and again.json == found.json
    np.testing.assert_array_equal(vision.draw(image("coffee.png"), again), drawn)
    np.testing.assert_array_equal(vision.draw(image("coffee.png"), list(found.boxes)), drawn)
    assert vision.draw(image("coffee.png"), found.boxes[:1]).shape[0] < drawn.shape[0]  # a class fewer in the legend
    with pytest.raises(AttributeError):
        found.task = "classify"


@shared
def test_masks_are_arrays():
    task = vision.Task(model("deeplabv3-mobilenetv2-257"), labels=DATA / "labels" / "voc_21.txt", threads=2)
    found = task(image("chelsea.png"))
    assert found.mask.shape == (300, 451) and found.mask.dtype == np.uint8
    assert [c.label for c in found.classes] == ["background", "cat"]
    assert found.classes[1].share == pytest.approx((found.mask == 8).mean())
    assert vision.draw(image("chelsea.png"), found).shape[0] > 300


@shared
def test_outputs_of_a_run_of_ones_own():
    session = sparkle.Session(model("ultraface-rfb-320"), threads=2)
    task = vision.Task(session)
    x = task.preprocess(image("astronaut.png"))
    assert x.shape == (1, 3, 240, 320) and x.dtype == np.float32
    outputs = session.run(x)
    wanted = task(image("astronaut.png")).json
    assert task.answer(image("astronaut.png"), outputs).json == wanted
    assert task.answer(image("astronaut.png"), outputs.as_dict()).json == wanted
    with pytest.raises(sparkle.BadInput, match="The model has 2 outputs, 1 was given"):
        task.answer(image("astronaut.png"), outputs[:1])


@shared
def test_what_is_asked_for_is_done():
    task = vision.Task(model("squeezenet1.1"), "embed", "unit", size=(224, 224), fit="stretch", threads=2)
    assert task.why == "as asked for" and "stretched to 224x224" in task.preprocessing and "a guess" not in task.preprocessing
    with pytest.raises(sparkle.BadInput, match="1x3x48x64 was given"):  # the network has one size
        vision.Task(model("squeezenet1.1"), size=(64, 48), threads=2)
    task = vision.Task(model("squeezenet1.1"), "embed", mean=(0.5, 0.4, 0.3), std=0.25, scale=1 / 255, threads=2)
    assert "minus (0.5, 0.4, 0.3), divided by 0.25" in task.preprocessing
    found = task(small())
    assert found.embedding.shape == (1000,) and found.json["embedding"] == pytest.approx(found.embedding.tolist())
    best = vision.Task(model("squeezenet1.1"), top=3, threads=2)(image("chelsea.png")).classes
    assert len(best) == 3 and best[0].index == 285 and best[0].label == "" and best[0].probability > best[1].probability


def test_every_kind_of_picture(upscale, tmp_path):
    pixels = small()
    wanted = upscale(pixels).picture
    assert wanted.shape == (48, 64, 3) and wanted.dtype == np.uint8
    path = tmp_path / "small.png"
    vision.save(path, pixels)
    np.testing.assert_array_equal(vision.read(path), pixels)
    for given in (path, str(path), path.read_bytes(), bytearray(path.read_bytes()), pixels[:, :, ::-1][:, :, ::-1],
                  pixels.astype(np.uint16) * 257, np.dstack([pixels, np.full((24, 32), 255, np.uint8)])):
        np.testing.assert_array_equal(upscale(given).picture, wanted)
    several = upscale([path, pixels])
    assert len(several) == 2 and all(np.array_equal(a.picture, wanted) for a in several)
    grey = small(1)
    np.testing.assert_array_equal(upscale(grey[:, :, 0]).picture, upscale(np.repeat(grey, 3, 2)).picture)
    np.testing.assert_array_equal(vision.draw(pixels, upscale(pixels)), wanted)


def test_pictures_of_pil(upscale):
    pil = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    pixels = small()
    photograph = pil.fromarray(pixels)
    np.testing.assert_array_equal(vision.read(photograph), pixels)
    np.testing.assert_array_equal(upscale(photograph).picture, upscale(pixels).picture)
    np.testing.assert_array_equal(vision.read(pil.fromarray(pixels[:, :, 0])), pixels[:, :, :1])
    paletted = photograph.quantize(16)
    np.testing.assert_array_equal(vision.read(paletted), np.asarray(paletted.convert("RGB")))
    exif = pil.Exif()
    exif[0x0112] = 6  # to be turned to the right
    file = io.BytesIO()
    photograph.save(file, "PNG", exif=exif)
    turned = pil.open(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(vision.read(turned), np.rot90(pixels, 3))


def test_the_task_is_known_with_the_first_picture():
    task = vision.Task(MODEL, threads=2)
    assert task.task is None and task.why == "" and "known with the first picture" in repr(task)
    found = task(small())
    assert task.task == found.task == "upscale" and "2 times as large" in task.why and found.why == task.why
    assert "upscale (guessed from" in repr(task)


@command
def test_enlarged_like_the_command(upscale, tmp_path):
    said(MODEL, PICTURE, "--output", tmp_path)
    np.testing.assert_array_equal(vision.read(tmp_path / "test_picture_upscaled.png"), upscale(PICTURE).picture)


def test_what_is_no_picture_is_one_sentence(upscale, tmp_path):
    cut = tmp_path / "cut.png"
    cut.write_bytes(PICTURE.read_bytes()[:2000])
    for wrong, error, sentence in (
            (tmp_path / "none.png", sparkle.FileUnreadable, "none.png"), (cut, sparkle.Error, "cut.png"),
            (b"text", sparkle.Error, "'the bytes given' is not a picture"), (b"", sparkle.Error, "the bytes given"),
            (3, sparkle.BadInput, "a int was given"), (None, sparkle.BadInput, "a NoneType was given"),
            (np.zeros((4, 4, 3), np.float32), sparkle.BadInput, "Pixels are uint8 or uint16, float32 was given"),
            (np.zeros((4, 4, 5), np.uint8), sparkle.BadInput, "4x4x5 was given"),
            (np.zeros((0, 4, 3), np.uint8), sparkle.Error, "without pixels"),
            (np.zeros(4, np.uint8), sparkle.BadInput, "4 was given")):
        with pytest.raises(error, match=".") as told:
            upscale(wrong)
        assert sentence in str(told.value) and "\n" not in str(told.value)


def test_options_that_do_not_fit_are_named():
    for options, sentence in ((dict(task="guess"), "There is no task 'guess'"), (dict(preset="no"), "There is no preset 'no'"),
                              (dict(fit="wide"), "fit 'wide' is not understood"), (dict(size=0), "size '0' is not understood"),
                              (dict(scale="a"), "scale 'a' is not understood"), (dict(threshold=2), "threshold is a score"),
                              (dict(labels=["a"], task="classify"), ""), (dict(pad_value="x"), "pad_value 'x'")):
        if not sentence:
            with pytest.raises(sparkle.Error):
                vision.Task(MODEL, **options)(small())
            continue
        with pytest.raises(sparkle.BadInput) as told:
            vision.Task(MODEL, **options)
        assert sentence in str(told.value)
    with pytest.raises(sparkle.BadInput, match="threads open a session"):
        vision.Task(sparkle.Session(MODEL), threads=2)


def test_arguments_of_a_wrong_type_are_one_sentence():
    whole, numbers = "give a whole number below 2^31.", "give a number, several in a list, or a text such as \"1/255\"."
    for name, value, advice in (
            ("task", 1, "give a text, or None."), ("labels", 3, "give names in a list, or the path of a file with one a line."),
            ("size", 6.5, "give a number of pixels, (width, height), or a text such as \"320x240\"."), ("mean", ["a"], numbers),
            ("scale", None, numbers), ("top", "5", whole), ("tile", 1 << 40, whole), ("overlap", 1.5, whole),
            ("threshold", "0.5", "give a number."), ("iou", None, "give a number."),
            ("color", b"rgb", "give a text, or None.")):
        with pytest.raises(sparkle.BadInput) as told:
            vision.Task(MODEL, **{name: value})
        assert str(told.value).startswith(f"The Task's {name} is ") and str(told.value).endswith(advice)
    with pytest.raises(sparkle.BadInput, match="The Session's threads is '2', of type str; give a whole number"):
        vision.Task(MODEL, threads="2")
    given, meant = (vision.Task(MODEL, size=size, fit="stretch") for size in (np.int64(64), "64"))
    assert given.preprocessing == meant.preprocessing


def test_tasks_are_pickled_by_path_and_options(tmp_path, monkeypatch):
    (tmp_path / "names.txt").write_text("a\nb\n")
    monkeypatch.chdir(tmp_path)
    task = vision.Task(MODEL, "upscale", labels="names.txt", tile=16, overlap=4, threads=1)
    kept = pickle.dumps(task)
    monkeypatch.chdir("/")
    again = pickle.loads(kept)
    assert repr(again) == repr(task) and again.labels == task.labels and again.task == "upscale"
    np.testing.assert_array_equal(again(small()).picture, task(small()).picture)
    with pytest.raises(TypeError, match="of bytes cannot be pickled"):
        pickle.dumps(vision.Task(MODEL.read_bytes()))


def mean_colours(rows, rows_out):
    """A model whose classes are the mean colours, by name."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["y"]), helper.make_node("Flatten", ["y"], ["z"])]
    graph = helper.make_graph(nodes, "g",
                              [helper.make_tensor_value_info("x", kind, [rows, 3, 8, 8])],
                              [helper.make_tensor_value_info("z", kind, [rows_out, 3])])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.helper.set_model_props(made, {"names": "{0: 'red', 1: 'green', 2: 'blue'}"})
    return made


@pytest.mark.parametrize("rows, rows_out, runs", [("N", "N", 2), ("N", "M", 0), (1, 1, 0)])
def test_lists_run_in_batches_where_the_model_leaves_the_batch_open(rows, rows_out, runs):
    task = vision.Task(mean_colours(rows, rows_out), "classify", preset="unit", fit="stretch", threads=2)
    pictures = [np.random.default_rng(i).integers(0, 256, (8 + i, 9, 3), dtype=np.uint8) for i in range(18)]
    alone, run, shapes = [task(picture) for picture in pictures], task.session.run, []
    task.session.run = lambda x: shapes.append(x.shape) or run(x)
    together = task(pictures)
    # The first and the last of the first batch run alone too, to see that both ways agree.
    assert shapes == [(8, 3, 8, 8), (1, 3, 8, 8), (1, 3, 8, 8), (8, 3, 8, 8)][: 2 * runs]
    for one, other in zip(alone, together):
        assert [c.label for c in other.classes] == [c.label for c in one.classes]
        assert [c.value for c in other.classes] == pytest.approx([c.value for c in one.classes], abs=1e-6)
    with pytest.raises(sparkle.BadInput, match="NoneType was given"):
        task([*pictures[:7], None])


def test_a_model_that_mixes_its_items_runs_them_one_by_one(caplog):
    onnx = pytest.importorskip("onnx")
    made = mean_colours("N", "N")
    made.graph.node[1].output[0] = "w"
    made.graph.node.append(onnx.helper.make_node("ReduceMax", ["w"], ["m"], axes=[0], keepdims=1))
    made.graph.node.append(onnx.helper.make_node("Sub", ["w", "m"], ["z"]))
    task = vision.Task(made, "embed", preset="unit", fit="stretch")
    pictures = [np.random.default_rng(i).integers(0, 256, (8, 8, 3), dtype=np.uint8) for i in range(16)]
    for _ in range(2):
        for answer in task(pictures):
            np.testing.assert_array_equal(answer.embedding, np.zeros(3))  # of one picture the largest is its own
    assert [record.message for record in caplog.records if "one by one" in record.message] == [
        f"Pictures of {task.session._name!r} have other results together than alone; lists run one by one."]


def test_classes_named_in_a_model_in_memory():
    made = mean_colours(1, 1)
    blue = np.zeros((8, 8, 3), np.uint8)
    blue[:, :, 2] = 255
    task = vision.Task(made.SerializeToString(), preset="unit")
    assert task.labels == ["red", "green", "blue"]
    found = task(blue)
    assert found.task == "classify" and found.classes[0].label == "blue" and found.classes[0].value == pytest.approx(1)


def detector(outputs, shape, open_sizes=False):
    """A model whose outputs are these arrays, from a picture of that shape; the scores are halved for a black one."""
    onnx = pytest.importorskip("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    kinds = {np.dtype(np.float32): onnx.TensorProto.FLOAT, np.dtype(np.int64): onnx.TensorProto.INT64}
    nodes = [helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0), helper.make_node("Mul", ["most", "half"], ["lit"]),
             helper.make_node("Add", ["lit", "half"], ["factor"])]
    held = [numpy_helper.from_array(np.float32(0.5), "half")]
    for name, values in outputs.items():
        held.append(numpy_helper.from_array(values, name + "_held"))
        scored = name in ("scores", "logits")
        nodes.append(helper.make_node("Mul" if scored else "Identity", [name + "_held"] + ["factor"] * scored, [name]))
    sizes = [size if size == 3 or (size == 1 and len(shape) == 4) else f"s{i}" for i, size in enumerate(shape)]
    graph = helper.make_graph(nodes, "g",
                              [helper.make_tensor_value_info("x", kinds[np.dtype(np.float32)], sizes if open_sizes else shape)],
                              [helper.make_tensor_value_info(n, kinds[v.dtype], v.shape) for n, v in outputs.items()], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


TORCHVISION = {"boxes": np.float32([[4, 6, 20, 12], [0, 0, 8, 8]]), "labels": np.int64([17, 3]), "scores": np.float32([.9, .2])}


@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize("shape", [[3, 24, 32], [24, 32, 3], [1, 3, 24, 32]])
def test_one_picture_without_a_batch(shape, open_sizes, tmp_path):
    white = np.full((24, 32, 3), 255, np.uint8)
    model_bytes = detector(TORCHVISION, shape, open_sizes)
    task = vision.Task(model_bytes)
    assert task.preprocess(white).shape == tuple(shape)
    found = task(white)
    assert found.task == "detect" and found.json["form"].startswith("torchvision (boxes in pixels")
    assert [(b.index, b.x0, b.y0, b.x1, b.y1) for b in found.boxes] == [(17, 4, 6, 20, 12)]
    assert found.boxes[0].score == pytest.approx(0.9)
    assert not task(np.zeros((24, 32, 3), np.uint8)).boxes  # 0.45
    if not COMMAND.is_file():
        return
    (tmp_path / "m.onnx").write_bytes(model_bytes)
    vision.save(tmp_path / "white.png", white)
    assert said(tmp_path / "m.onnx", tmp_path / "white.png")["answer"] == found.json


def test_detectors_that_name_each_object_once():
    logits, boxes = np.full((1, 300, 80), -8, np.float32), np.full((1, 300, 4), 0.5, np.float32)
    logits[0, 3, 15], boxes[0, 3] = 2, (0.5, 0.25, 0.25, 0.125)
    white = np.full((64, 128, 3), 255, np.uint8)
    found = vision.Task(detector({"logits": logits, "pred_boxes": boxes}, [1, 3, 32, 32]))(white)
    assert found.json["form"].startswith("RT-DETR (sigmoid of each class")
    (box,) = found.boxes
    assert box.index == 15 and box.score == pytest.approx(1 / (1 + np.exp(-2)))
    assert (box.x0, box.y0, box.x1, box.y1) == pytest.approx((48, 12, 80, 20), abs=1e-3)
    with pytest.raises(sparkle.BadInput, match="has 80 classes; give one line for each"):
        vision.Task(detector({"logits": logits, "pred_boxes": boxes}, [1, 3, 32, 32]), labels=["a", "b"])(white)
    plain = detector({"scores": logits, "boxes": boxes}, [1, 3, 32, 32])
    with pytest.raises(sparkle.BadInput, match="Read as SSD .* scores .* are -8 to 2; give the preset"):
        vision.Task(plain)(white)
    assert vision.Task(plain, preset="rtdetr")(white).boxes == found.boxes
    rows = np.zeros((1, 300, 6), np.float32)
    rows[0, 5] = 8, 12, 16, 20, 0.75, 7
    (box,) = vision.Task(detector({"output0": rows}, [1, 3, 32, 32]))(white).boxes  # 32x16 of the tensor are the picture's
    assert (box.index, box.score, box.x0, box.y0, box.x1, box.y1) == (7, 0.75, 32, 16, 64, 48)
