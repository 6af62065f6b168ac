#!/usr/bin/env python3
"""Draws models/test_picture.png with Python alone: scripts/draw_test_picture.py [FILE]. A landscape for judging an upscaler:
long edges at all angles, letters of thin strokes, smooth gradients, fine regular and irregular textures."""
import math
import pathlib
import struct
import sys
import zlib

WIDTH, HEIGHT, SAMPLES = 480, 270, 3  # SAMPLES x SAMPLES points are averaged per pixel
PI2 = 2 * math.pi

# Letters as strokes on a grid 2 wide and 4 high, y down.
LETTERS = {
    "S": [(2, 0, 0, 0), (0, 0, 0, 2), (0, 2, 2, 2), (2, 2, 2, 4), (2, 4, 0, 4)],
    "P": [(0, 4, 0, 0), (0, 0, 2, 0), (2, 0, 2, 2), (2, 2, 0, 2)],
    "A": [(0, 4, 1, 0), (1, 0, 2, 4), (0.5, 2.4, 1.5, 2.4)],
    "R": [(0, 4, 0, 0), (0, 0, 2, 0), (2, 0, 2, 2), (2, 2, 0, 2), (0.8, 2, 2, 4)],
    "K": [(0, 4, 0, 0), (2, 0, 0, 2.2), (0.6, 1.7, 2, 4)],
    "L": [(0, 0, 0, 4), (0, 4, 2, 4)],
    "E": [(2, 0, 0, 0), (0, 0, 0, 4), (0, 4, 2, 4), (0, 2, 1.6, 2)],
}


def mix(a, b, t):
    t = min(max(t, 0.0), 1.0)
    return tuple(p + (q - p) * t for p, q in zip(a, b))


def noise(x, y):
    """Smooth value noise of period one, 0 to 1, from an integer hash."""
    def corner(i, j):
        h = (i * 374761393 + j * 668265263) & 0xFFFFFFFF
        h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
        return (h ^ (h >> 16)) / 0xFFFFFFFF
    i, j = math.floor(x), math.floor(y)
    u, v = x - i, y - j
    u, v = u * u * (3 - 2 * u), v * v * (3 - 2 * v)
    top = corner(i, j) * (1 - u) + corner(i + 1, j) * u
    return top * (1 - v) + (corner(i, j + 1) * (1 - u) + corner(i + 1, j + 1) * u) * v


def strokes(text, x, y, size):
    """Line segments of a text with letters 4 * size high."""
    lines = []
    for n, letter in enumerate(text):
        for x0, y0, x1, y1 in LETTERS[letter]:
            lines.append((x + (x0 + 3 * n) * size, y + y0 * size, x + (x1 + 3 * n) * size, y + y1 * size))
    return lines


def near(lines, x, y, radius):
    """Whether a point is closer than `radius` to one of the segments."""
    for x0, y0, x1, y1 in lines:
        dx, dy = x1 - x0, y1 - y0
        t = min(max(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy), 0.0), 1.0)
        if (x - x0 - t * dx) ** 2 + (y - y0 - t * dy) ** 2 < radius * radius:
            return True
    return False


SIGN = strokes("SPARKLE", 26, 196, 4.4)
SMALL_SIGN = strokes("SPARKLE", 27, 222, 1.7)
RIGGING = [(338, 60, 286, 168), (338, 60, 392, 168), (338, 44, 338, 176), (338, 60, 312, 168), (338, 60, 365, 168)]


def sky(x, y):
    colour = mix((0.16, 0.30, 0.58), (0.98, 0.78, 0.55), y / 150)
    away = math.hypot(x - 108, y - 62)
    if away < 24:
        return mix((1.0, 0.97, 0.80), (1.0, 0.86, 0.50), away / 24)
    colour = mix((1.0, 0.90, 0.66), colour, 0.45 + away / 150)
    cloud = 0.6 * noise(x / 46, y / 15) + 0.3 * noise(x / 17 + 9, y / 7) + 0.1 * noise(x / 6, y / 3)
    return mix(colour, (1.0, 0.96, 0.93), max(0.0, cloud - 0.52) * 2.6)


def mountain(x, y):
    """Facets of snow and rock, or None above the ridge."""
    ridge = 112
    for peak, height, half in ((214, 52, 92), (296, 30, 84), (60, 22, 88)):
        ridge -= height * max(0.0, 1 - abs(x - peak) / half)
    ridge += 5 * noise(x / 9, 3) - 2.5
    if y < ridge:
        return None
    lit = 0.62 + 0.25 * math.sin(x / 7 + 3 * noise(x / 13, y / 19)) - 0.004 * (y - ridge)
    snow = y - ridge < 15 + 9 * noise(x / 5, 7)
    return mix((0.22, 0.25, 0.36), (0.94, 0.96, 1.0) if snow else (0.47, 0.45, 0.50), lit)


def water(x, y):
    depth = (y - 150) / 120
    ripple = math.sin(y * y / 190 + 1.7 * math.sin(x / 29) + 0.02 * x)
    colour = mix((0.62, 0.60, 0.62), (0.06, 0.22, 0.34), depth)
    glitter = 0.32 * max(0.0, ripple) * (1 - 0.6 * depth) * math.exp(-((x - 108) / 80) ** 2)
    return mix(colour, (1.0, 0.92, 0.76), glitter + 0.05 * ripple)


def lighthouse(x, y):
    """A tower with slanted stripes, lamp room and gallery; None outside."""
    half = 10 + (y - 70) * 0.085
    off = x - 428
    if 70 <= y < 190 and abs(off) < half:
        red = ((y + 0.55 * off) // 15) % 2 == 0
        window = abs(off) < 2.2 and (y - 84) % 32 < 7
        colour = (0.10, 0.13, 0.20) if window else (0.80, 0.13, 0.14) if red else (0.97, 0.95, 0.92)
        return mix(colour, (0.08, 0.05, 0.12), 0.55 * (off / half + 1) / 2)
    if 64 <= y < 70 and abs(off) < 15:
        return (0.13, 0.14, 0.18) if y > 67 or int(off + 60) % 3 == 0 else None
    if 48 <= y < 64 and abs(off) < 8:
        return (0.14, 0.15, 0.20) if int(off + 56) % 5 == 0 else (1.0, 0.90, 0.45)
    if 36 <= y < 48 and abs(off) < 9 * (y - 36) / 12:
        return (0.62, 0.10, 0.12)
    return None


def boat(x, y):
    if near(RIGGING, x, y, 0.45):
        return (0.12, 0.09, 0.08)
    if 62 <= y < 160 and 340 < x < 340 + (y - 62) * 0.44:
        weave = 0.5 + 0.5 * math.sin((x + 2 * y) * 0.9)
        return mix((0.93, 0.89, 0.80), (0.75, 0.69, 0.58), 0.25 * weave + (x - 340) / 90)
    if 76 <= y < 160 and 336 - (y - 76) * 0.36 < x < 336:
        return mix((0.86, 0.42, 0.20), (0.66, 0.25, 0.14), (336 - x) / 32)
    if 168 <= y < 184 and abs(x - 338) < 58 - (y - 168) * 1.1:
        return (0.92, 0.90, 0.86) if y < 171 else mix((0.35, 0.19, 0.10), (0.20, 0.10, 0.06), (y - 168) / 16)
    return None


def shore(x, y):
    """Grass, rocks and the two boards in front; None where the water shows."""
    if 18 <= x < 152 and 186 <= y < 236:
        if near(SIGN, x, y, 0.95) or near(SMALL_SIGN, x, y, 0.42):
            return (0.10, 0.07, 0.06)
        if x < 20.5 or x >= 149.5 or y < 188.5 or y >= 233.5:
            return (0.32, 0.21, 0.13)
        grain = noise(x / 11, y * 1.6) + 0.4 * noise(x / 3, y * 3)
        return mix((0.93, 0.84, 0.66), (0.74, 0.60, 0.40), 0.55 * grain)
    ring = math.hypot(x - 205, y - 228)
    if ring < 30:  # rings ever finer towards the rim
        return mix((0.97, 0.97, 0.95), (0.09, 0.10, 0.13), 0.5 + 0.5 * math.cos(ring * ring * 0.062))
    if 246 <= x < 296 and 200 <= y < 250:  # bars ever finer to the right, squares below
        if y < 225:
            dark = math.sin(PI2 * ((x - 246) / 14 + ((x - 246) / 25) ** 3 / 2)) > 0
            return (0.08, 0.09, 0.12) if dark else (0.96, 0.95, 0.90)
        return (0.13, 0.32, 0.52) if (int((x - 246) // 4) + int((y - 225) // 4)) % 2 else (0.96, 0.80, 0.30)
    bank = 196 + 26 * noise(x / 60, 1) + 4 * noise(x / 7, 5) - (42 if x > 396 else 0) * min(1.0, (x - 396) / 25)
    if y < bank:
        return None
    blade = noise(x * 0.9 + 0.35 * (y - bank), y / 9) * 0.7 + 0.3 * noise(x * 2.3, y / 3)
    stone = noise(x / 13 + 4, y / 9)
    if x > 380 and stone > 0.5:
        return mix((0.30, 0.29, 0.31), (0.63, 0.60, 0.57), noise(x / 4, y / 3) + stone - 0.6)
    return mix((0.07, 0.20, 0.08), (0.52, 0.66, 0.24), blade - 0.002 * (y - bank))


def colour_at(x, y):
    for layer in (shore, boat, lighthouse):
        colour = layer(x, y)
        if colour:
            return colour
    if y >= 150:
        return water(x, y)
    return mountain(x, y) or sky(x, y)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "models" / "test_picture.png"
    file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    offsets = [(i + 0.5) / SAMPLES for i in range(SAMPLES)]
    rows = bytearray()
    for y in range(HEIGHT):
        rows.append(0)  # PNG filter of the row: none
        for x in range(WIDTH):
            points = [colour_at(x + u, y + v) for v in offsets for u in offsets]
            for channel in zip(*points):
                rows.append(min(255, max(0, round(255 * sum(channel) / len(points)))))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows), 9)) +
                     chunk(b"IEND", b""))


if __name__ == "__main__":
    if {"-h", "--help"} & set(sys.argv[1:]):
        raise SystemExit(print(__doc__))
    main()
