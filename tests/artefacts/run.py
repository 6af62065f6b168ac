#!/usr/bin/env python3
"""Installs and uses what scripts/release made, where no compiler is: tests/artefacts/run.py [FOLDER]. The tarball and the
Debian package in a bare Debian root, the wheel in a clean virtual environment inside one; a C++ program is built against the
tarball outside and runs in the root. Also: packing the same build again gives the same bytes. Closes with 'N passed, N failed,
N skipped'."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import root

ROOT = root.ROOT
MODEL, PICTURE = ROOT / "models" / "upscale2x.onnx", ROOT / "models" / "test_picture.png"
FILES = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "release-files").resolve()
VERSION = re.search(r"project\(sparkle VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
PICTURE_LIBRARIES = "libjpeg62-turbo libpng16-16 libtiff6 libwebpdemux2"  # as docs/install.md names them
counts = {"passed": 0, "failed": 0, "skipped": 0}
PYTHON = """
import numpy, sparkle
session = sparkle.Session("/model.onnx", sparkle.Device(threads=1))
(y,) = session.run(numpy.zeros((1, 3, 8, 12), numpy.float32))
assert y.shape == (1, 3, 16, 24), y.shape
print(sparkle.__version__)
"""


def count(name, test, *given):
    """One line for the test: an assertion or a program that failed is a failure with its words."""
    try:
        test(*given)
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError) as error:
        counts["failed"] += 1
        print(f"FAILED  {name}: {error}", flush=True)
        return
    counts["passed"] += 1
    print(f"ok      {name}", flush=True)


def the(pattern):
    found = sorted(FILES.glob(pattern))
    if len(found) != 1:
        raise AssertionError(f"'{FILES}' has {len(found)} files {pattern}, not one; run scripts/release first.")
    return found[0]


def expect(text, *words):
    for word in words:
        if word not in text:
            raise AssertionError(f"'{word}' is not in: {text[-1500:]}")


def no_compiler(bare):
    for name in ("cc", "gcc", "g++", "clang", "make", "cmake", "ninja"):
        assert bare.run(f"command -v {name}", check=False).returncode != 0, f"the bare root has {name}"


def use_command(bare, command):
    """The version, one run with a picture, and a request to a server, by the command named so."""
    expect(bare.run(f"{command} --version").stdout, VERSION)
    said = bare.run(f"cd /tmp && {command} run /model.onnx /picture.png --output out && ls out").stdout
    expect(said, ".png")
    expect(bare.run(f"{command} verify /vectors/network_squeeze").stdout, "1 passed, 0 failed, 0 skipped")
    served = bare.run(f"""{command} serve /model.onnx --http-port 18231 --metrics-port 0 >~/served 2>&1 & server=$!
        for i in $(seq 100); do if grep -q '^http ' ~/served; then break; fi; sleep 0.1; done
        python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:18231/v2/health/ready').status)"
        kill $server; wait $server""").stdout
    expect(served, "200")


def prepare(bare):
    bare.put(MODEL, "/model.onnx")
    bare.put(PICTURE, "/picture.png")
    bare.put(ROOT / "tests" / "vectors" / "network_squeeze", "/vectors/network_squeeze")


def tarball(bare):
    bare.put(the("*.tar.gz"), "/sparkle.tar.gz")
    bare.run("mkdir /opt/sparkle && tar -xf /sparkle.tar.gz --strip-components=1 -C /opt/sparkle")
    # Without the libraries of pictures everything but these runs, and one sentence says what is missing.
    refused = bare.run("cd /tmp && /opt/sparkle/bin/sparkle run /model.onnx /picture.png --output none", check=False)
    assert refused.returncode == 2, refused
    expect(refused.stderr, "libsparkle_pictures.so", "does not load", ".so.")
    expect(bare.run("/opt/sparkle/bin/sparkle verify /vectors/network_squeeze").stdout, "1 passed, 0 failed, 0 skipped")
    bare.run(f"apt-get install -y --no-install-recommends {PICTURE_LIBRARIES}")
    use_command(bare, "/opt/sparkle/bin/sparkle")
    for place in ("lib/cmake/sparkle/sparkle-config.cmake", "lib/pkgconfig/sparkle.pc", "include/sparkle/sparkle.hpp",
                  "include/sparkle/vision.h", "include/sparkle/vision.hpp",
                  "share/man/man1/sparkle.1", "share/bash-completion/completions/sparkle", "share/zsh/site-functions/_sparkle",
                  "share/fish/vendor_completions.d/sparkle.fish", "share/doc/sparkle/copyright",
                  "share/doc/sparkle/reference/index.html", "share/doc/sparkle/reference/c/index.html"):
        bare.run(f"test -s /opt/sparkle/{place}")


def program(bare, work):
    """Built here against the unpacked tarball, by find_package and by pkg-config; run there."""
    prefix = work / "prefix"
    prefix.mkdir()
    subprocess.run(["tar", "-xf", the("*.tar.gz"), "--strip-components=1", "-C", prefix], check=True)
    source = ROOT / "examples" / "cpp"
    for words in (["cmake", "-S", source, "-B", work / "cpp", f"-DCMAKE_PREFIX_PATH={prefix}"],
                  ["cmake", "--build", work / "cpp", "--target", "upscale"]):
        subprocess.run(words, check=True, capture_output=True, text=True, timeout=300)
    bare.put(work / "cpp" / "upscale", "/usr/local/bin/upscale")
    python = "import sys; sys.stdout.buffer.write(b'P6 7 5 255\\n' + bytes(range(105)))"
    bare.run(f'cd /tmp && python3 -c "{python}" >in.ppm && LD_LIBRARY_PATH=/opt/sparkle/lib upscale /model.onnx in.ppm out.ppm')
    if shutil.which("pkg-config"):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "--define-prefix", "sparkle"], check=True,
                               capture_output=True, text=True,
                               env={**root.CLEAN, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}).stdout.split()
        assert any(str(prefix) in word for word in flags), flags
    version = (prefix / "lib/cmake/sparkle/sparkle-config-version.cmake").read_text()
    expect(version, VERSION)


def debian(bare):
    package = the("*.deb")
    bare.put(package, f"/{package.name}")
    depends = subprocess.run(["dpkg-deb", "-f", package, "Depends"], check=True, capture_output=True, text=True).stdout
    expect(depends, "libc6", "libstdc++6")
    for name in ("protobuf", "ssl", "httplib"):
        assert name not in depends, depends
    bare.run(f"apt-get install -y /{package.name}")
    use_command(bare, "sparkle")
    bare.run("ldconfig -p | grep libsparkle && test -s /usr/lib/pkgconfig/sparkle.pc && "
             "test -s /usr/lib/cmake/sparkle/sparkle-config.cmake")
    bare.run("test -s /usr/share/bash-completion/completions/sparkle && dpkg -r sparkle-cnn && ! command -v sparkle")


def wheel(bare, work):
    file = the("*.whl")
    assert "manylinux_2_36" in file.name, file.name
    house = work / "house"
    subprocess.run([ROOT / "build/venv-release/bin/pip", "download", "--disable-pip-version-check", "-q",
                    "--only-binary=:all:", "-d", house, "numpy"], check=True, capture_output=True, text=True, timeout=300)
    shutil.copy(file, house)
    bare.put(house, "/house")
    bare.run("python3 -m venv /env && "
             "/env/bin/pip install -q --disable-pip-version-check --no-index --find-links /house sparkle-cnn")
    expect(bare.run(f"/env/bin/python -c '{PYTHON}'").stdout, VERSION)
    expect(bare.run("/env/bin/python -m sparkle --version").stdout, VERSION)
    assert bare.run("/env/bin/python -m sparkle run /missing.onnx", check=False).returncode == 2, "the exit status is lost"
    use_command(bare, "/env/bin/sparkle")
    names = zipfile.ZipFile(file).namelist()
    assert sum("libsparkle.so" in name for name in names) == 1, names


def exported(work):
    """Nothing but the interface is visible, and no path of the build's machine is in a file."""
    prefix = work / "prefix"
    library = next((prefix / "lib").glob("libsparkle.so.*"))
    names = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    others = [name for name in names.splitlines() if not name.split()[-1].startswith("sparkle_")]
    assert not others, others[:5]
    for path in sorted(p for p in prefix.rglob("*") if p.is_file() and not p.is_symlink()):
        assert str(ROOT).encode() not in path.read_bytes(), f"'{path.relative_to(prefix)}' names the folder of its build"


def same_bytes(work):
    """Packed again, the same build gives the same bytes."""
    again = work / "again"
    subprocess.run([ROOT / "scripts" / "release", "--pack", again], check=True, capture_output=True, timeout=1800)
    first, second = ((folder / "SHA256SUMS").read_text() for folder in (FILES, again))
    assert first == second, f"packed once: {first}\nagain: {second}"


def main():
    with tempfile.TemporaryDirectory(prefix="sparkle-artefacts-") as name:
        work = pathlib.Path(name)
        try:
            bare = root.Root(work)
        except root.NotHere as why:
            print(f"SKIP    tarball, program, Debian package and wheel in a bare root: {why}")
            counts["skipped"] += 4
        else:
            with bare:
                prepare(bare)
                count("the bare root has no compiler", no_compiler, bare)
                count("tarball", tarball, bare)
                count("a program built outside against the tarball", program, bare, work)
                count("Debian package", debian, bare)
                count("wheel", wheel, bare, work)
                count("what the library shows", exported, work)
        count("packed twice, the same bytes", same_bytes, work)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
