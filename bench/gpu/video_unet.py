"""The network of tests/networks/video_unet.cc with the same weights, for engines beside Sparkle; they come from a counter.

`forward` is written over the few operators of an object `ops`: PyTorch's (TorchOps), or plain loops of a test. Weights come as
NumPy arrays or PyTorch tensors, made where they are needed. Batch normalisation is folded into the convolutions, as there."""

import math
import struct

KEEP = (1 << 64) - 1
HEADS, FRAME = 16, 3
VARIANCE, WEIGHTED, SILU_SQUARE, GELU_SQUARE, BRANCH, EPSILON = 16.0, 0.8, 7.77, 0.425, 0.5, 1e-5


def rounded(number):
    """As float32 holds it: what multiplies float32 here must not have more digits than there."""
    return struct.unpack("f", struct.pack("f", number))[0]


SCALE = rounded(1 / rounded(65536 * rounded((8 / 12) ** 0.5)))


def signed(bits):
    """64 bits as arrays of int64 hold them."""
    return bits - (1 << 64) if bits >> 63 else bits


def mix(z):
    """SplitMix64's last step of int64 values, whose shifts bring in signs that are taken off again; of Python's numbers too."""
    number = isinstance(z, int)
    cut = (lambda v: signed(v & KEEP)) if number else (lambda v: v)
    z = cut((z ^ ((z >> 30) & (KEEP >> 30))) * signed(0xBF58476D1CE4E5B9))
    z = cut((z ^ ((z >> 27) & (KEEP >> 27))) * signed(0x94D049BB133111EB))
    return z ^ ((z >> 31) & (KEEP >> 31))


def pieces(h):
    return (h & 0xFFFF) + ((h >> 16) & 0xFFFF) + ((h >> 32) & 0xFFFF) + ((h >> 48) & 0xFFFF)


class Weights:
    """Seeded tensors, each of a stream of its own in the order they are asked for. `arange(begin, end)`: int64 of the
    library; `to_f32`: these as float32; `join`: a list of arrays, one behind the other."""

    def __init__(self, arange, to_f32, join, seed=1, most=1 << 24):
        self.arange, self.to_f32, self.join = arange, to_f32, join
        self.seed, self.most, self.stream = seed, most, 0

    def normal(self, shape, deviation, mean=0.0):
        self.stream += 1
        key = signed((mix(signed((mix(signed((self.seed + 0x9E3779B97F4A7C15) & KEEP)) + self.stream) & KEEP))) & KEEP)
        count, parts = math.prod(shape), []
        for begin in range(0, count, self.most):  # what lies between takes eight times the memory
            index = self.arange(begin, min(count, begin + self.most)) * 2 + key
            sums = pieces(mix(index)) + pieces(mix(index + 1)) - 4 * 65535
            parts.append(self.to_f32(sums) * SCALE * rounded(deviation) + rounded(mean))
        return self.join(parts).reshape(shape)


class Network:
    """`ops` has conv(x, w, b), silu, pool, up, concat(list), dense(x, w, b), norm(x, scale, bias), gelu, attention(q, k, v),
    tokens (a map as [batch, pixels, channels]), channels (back, with the side), wide(tensor): in double precision, and
    kept(tensor): a weight as the operators want it."""

    def __init__(self, weights, ops, base=192):
        self.weights, self.ops, self.base, self.layers = weights, ops, base, []
        self.parts = {
            "first": self.unet(FRAME + 1, base),
            "second": self.unet(FRAME, base // 2),
            "temporal0": self.block(2 * FRAME, base, 1.0),
            "temporal1": self.attention(base),
            "temporal2": self.block(base, FRAME),
        }

    def conv(self, c, filters, square):
        normal = self.weights.normal
        w = normal((filters, c, 3, 3), math.sqrt(WEIGHTED * VARIANCE / (square * c * 9)))
        b, scale = normal((filters,), 0.05), normal((filters,), 0.1, 1.0)
        shift = normal((filters,), math.sqrt((1 - WEIGHTED) * VARIANCE))
        mean, variance = normal((filters,), 0.1), normal((filters,), 0.1, 1.0)
        wide = self.ops.wide
        factor = wide(scale) / (wide(variance) + EPSILON) ** 0.5
        w = wide(w) * factor.reshape(-1, 1, 1, 1)
        return self.ops.kept(w), self.ops.kept((wide(b) - wide(mean)) * factor + wide(shift))

    def block(self, c, filters, square=SILU_SQUARE):
        return [self.conv(c if i == 0 else filters, filters, square if i == 0 else SILU_SQUARE) for i in range(4)]

    def dense(self, c, outputs, gain):
        w = self.weights.normal((c, outputs), gain / math.sqrt(c))
        return self.ops.kept(w), self.ops.kept(self.weights.normal((outputs,), 0.05))

    def norm(self, c):
        return self.ops.kept(self.weights.normal((c,), 0.1, 1.0)), self.ops.kept(self.weights.normal((c,), 0.1))

    def attention(self, c):
        order = {"norm1": lambda: self.norm(c)}
        order |= {part: lambda: self.dense(c, c, 1.0) for part in ("query", "key", "value")}
        order["project"] = lambda: self.dense(c, c, BRANCH * math.sqrt(SILU_SQUARE))
        order["norm2"] = lambda: self.norm(c)
        order["wide"] = lambda: self.dense(c, 4 * c, 1.0)
        order["narrow"] = lambda: self.dense(4 * c, c, BRANCH * math.sqrt(SILU_SQUARE / GELU_SQUARE))
        return {part: make() for part, make in order.items()}

    def unet(self, c, base):
        parts = {"down": [], "up": []}
        for level in range(4):
            block = self.block(c, base << level, 1.0 if level == 0 else SILU_SQUARE)
            parts["down"].append((block, self.attention(base << level) if level else None))
            c = base << level
        parts["middle"] = self.block(c, base * 16), self.attention(base * 16), self.block(base * 16, base * 8)
        c = base * 8
        for level in (3, 2, 1, 0):
            filters = base << max(level - 1, 0)
            parts["up"].append(self.block(c + (base << level), filters))
            c = filters
        w = self.weights.normal((FRAME, c, 1, 1), 1 / math.sqrt(SILU_SQUARE * c))
        parts["output"] = self.ops.kept(w), self.ops.kept(self.weights.normal((FRAME,), 0.05))
        return parts

    def run_block(self, block, x):
        for w, b in block:
            x = self.ops.silu(self.ops.conv(x, w, b))
        return x

    def run_attention(self, p, x):
        ops = self.ops
        tokens = ops.tokens(x)
        before = ops.norm(tokens, *p["norm1"])
        mixed = ops.attention(*(ops.dense(before, *p[part]) for part in ("query", "key", "value")))
        tokens = tokens + ops.dense(mixed, *p["project"])
        wide = ops.gelu(ops.dense(ops.norm(tokens, *p["norm2"]), *p["wide"]))
        return ops.channels(tokens + ops.dense(wide, *p["narrow"]), x.shape[-1])

    def run_unet(self, p, x):
        ops, skips = self.ops, []
        for block, attention in p["down"]:
            x = self.run_block(block, x)
            x = self.run_attention(attention, x) if attention else x
            skips.append(x)
            x = ops.pool(x)
        begin, attention, end = p["middle"]
        x = self.run_block(end, self.run_attention(attention, self.run_block(begin, x)))
        for block in p["up"]:
            x = self.run_block(block, ops.concat([ops.up(x), skips.pop()]))
        return ops.conv(x, *p["output"])

    def forward(self, frame, previous, plane):
        p = self.parts
        x = self.run_unet(p["second"], self.run_unet(p["first"], self.ops.concat([frame, plane])))
        x = self.run_block(p["temporal0"], self.ops.concat([x, previous]))
        return self.run_block(p["temporal2"], self.run_attention(p["temporal1"], x))


class TorchOps:
    """PyTorch's operators on tensors of one type, channels last."""

    def __init__(self, torch, device, dtype):
        self.torch, self.device, self.dtype, self.functional = torch, device, dtype, torch.nn.functional

    def weights(self, seed=1):
        torch = self.torch
        arange = lambda begin, end: torch.arange(begin, end, dtype=torch.int64, device=self.device)
        return Weights(arange, lambda x: x.to(torch.float32), torch.cat, seed)

    def wide(self, x):
        return x.to(self.torch.float64)

    def kept(self, x):
        x = x.to(self.torch.float32).to(self.dtype)
        if x.dim() == 2:
            return x.t().contiguous()
        return x.contiguous(memory_format=self.torch.channels_last) if x.dim() == 4 else x

    def conv(self, x, w, b):
        return self.functional.conv2d(x, w, b, padding=w.shape[-1] // 2)

    def silu(self, x):
        return self.functional.silu(x)

    def pool(self, x):
        return self.functional.max_pool2d(x, 2)

    def up(self, x):
        return self.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)

    def concat(self, parts):
        return self.torch.cat(parts, 1)

    def dense(self, x, w, b):
        return self.functional.linear(x, w, b)

    def norm(self, x, scale, bias):
        return self.functional.layer_norm(x, scale.shape, scale, bias, EPSILON)

    def gelu(self, x):
        return self.functional.gelu(x)

    def attention(self, *qkv):
        batch, pixels, c = qkv[0].shape
        q, k, v = (x.reshape(batch, pixels, HEADS, c // HEADS).transpose(1, 2) for x in qkv)
        return self.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, pixels, c)

    def tokens(self, x):
        return x.flatten(2).transpose(1, 2)

    def channels(self, x, side):
        return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1, side)


def peer(torch, device, dtype, batch, base, size, seed=1):
    """The network as a call, and its inputs by name: normal numbers, channels last, on the device."""
    ops = TorchOps(torch, device, dtype)
    network = Network(ops.weights(seed), ops, base)
    random = torch.Generator(device=device).manual_seed(seed)
    make = lambda *shape: torch.randn(*shape, generator=random, device=device, dtype=torch.float32)
    frame, previous, time = make(batch, FRAME, size, size), make(batch, FRAME, size, size), make(1, 1, 1, 1)
    maps = [ops.kept(x) for x in (frame, previous, time.expand(batch, 1, size, size))]
    return lambda: network.forward(*maps), {"frame": frame, "previous": previous, "time": time}
