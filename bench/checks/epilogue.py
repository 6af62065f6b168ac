"""Instructions that a warp issues behind a kernel's main loop until a tile's outputs are on their way, counted in its machine
code, for kernels whose outputs have 16 bits.

Many ways lead from the loop's end to the tile's, which is a jump back to the next one or the kernel's end. Counted is the one
that rounds and stores most in wide pieces (F2FP, STG.E.128, STSM, UTMASTG), and of these the shortest: whole tiles whose
columns lie side by side, with factors and bias, without a residual or an activation (where ReLU is a part of the rounding, with
it). No way is one that stores single elements of 16 bits, that makes other blocks wait for what it has stored (MEMBAR.SC.GPU:
sums in parts), or that calls what may be out of line.

Jumps back are not taken, but loops that round are, as often as `turns` says, innermost first. Which of its fragments a turn
puts into shared memory is a chain of tests, of which the shortest way passes none that holds: the stores are added, each
once."""

import re

WIDE = re.compile(r"F2FP|STSM|UTMASTG|STG\.E\.128")
TABLE = re.compile(r"LDC(?:\.\w+)* (R\d+), c\[0x2\]\[R\d+(?:\.\w+)?(?:\+(0x[0-9a-f]+))?\]")
NO_WAY = re.compile(r"(ST|STG)(\.E)?\.[US](8|16)\b|MEMBAR\.SC\.GPU|JMP|RET")


class Ways:
    """`code`: [(address, predicated, operation, whole text)]; `targets`: of its jumps; `cases`: of those that are indexed."""

    def __init__(self, code, targets, cases):
        self.code, self.targets, self.cases = code, targets, cases
        self.place = {row[0]: i for i, row in enumerate(code)}

    def following(self, i):
        """Where it may go on, further down."""
        address, predicated, operation, text = self.code[i]
        found = []
        if operation == "BRA" and ".DIV" not in text:
            if self.targets.get(address, 0) > address:
                found.append(self.place.get(self.targets[address]))
            if predicated or "," in text:
                found.append(i + 1)
        elif operation == "BRX":
            found += [self.place.get(to) for to in self.cases.get(address, ()) if to > address]
        elif operation.startswith("CALL"):
            to = re.search(r"0x([0-9a-f]+)", text)
            if to and int(to[1], 16) == address + 32:  # a jump over the next instruction, as nvcc leaves loops for 8.0
                found.append(i + 2)
            if predicated:
                found.append(i + 1)
        elif operation != "EXIT" or predicated:
            found.append(i + 1)
        return [n for n in found if n is not None and n < len(self.code)]

    def best(self, begin, ends, more):
        """(wide pieces, minus the instructions) of the best way from `begin` to where `ends` says; None: there is none. `more`:
        what is added at an instruction."""
        best = {}
        for i in range(len(self.code) - 1, begin - 1, -1):
            text = self.code[i][3]
            if NO_WAY.match(text):
                continue
            wide, length = more.get(i, (0, 0))
            wide, length = wide + bool(WIDE.match(text)), length - 1
            ways = [best[n] for n in self.following(i) if n in best] + ([(0, 0)] if ends(i) else [])
            if ways:
                way = max(ways)
                best[i] = way[0] + wide, way[1] + length
        return best.get(begin)


def cases_of(code, words):
    """Where each indexed jump (BRX) may lead. `words`: the kernel's constants of bank 2, tables of addresses one behind the
    other, of which each jump loads from the begin of its own."""
    loads = [(i, m[1], int(m[2] or "0", 16)) for i, row in enumerate(code) if (m := TABLE.match(row[3]))]
    begins = sorted({begin for _, _, begin in loads}) + [4 * len(words)]
    found = {}
    for i, (address, _, operation, text) in enumerate(code):
        mine = [begin for at, register, begin in loads if at < i and f" {register} " in text] if operation == "BRX" else []
        if mine:
            found[address] = words[mine[-1] // 4 : begins[begins.index(mine[-1]) + 1] // 4]
    return found


def counted(code, jumps, loop, turns=(), words=()):
    """Instructions behind `loop`, the (first, last) address of the main loop; None: no way rounds anything. `jumps`: (at, to);
    `turns` and `words` as above."""
    first, last = loop
    jumps = list(jumps)
    ways = Ways(code, dict(jumps), cases_of(code, words))
    rounds = [row[0] for row in code if row[2] == "F2FP"]
    inner = sorted(((to, at) for at, to in jumps if last < to < at and any(to <= a <= at for a in rounds)),
                   key=lambda one: one[1] - one[0])[: len(turns)]
    if len(inner) < len(turns):
        return None
    more = {}
    for (to, at), count in zip(inner, turns):
        turn = ways.best(ways.place[to], lambda i, at=at: ways.code[i][0] == at, more)
        if turn is None:
            return None
        more[ways.place[to]] = (count - 1) * turn[0], (count - 1) * turn[1]
    if inner:
        to, at = inner[-1]
        wide, length = more[ways.place[to]]
        more[ways.place[to]] = wide, length - sum(row[2] == "STS" for row in code if to <= row[0] <= at)

    def ends(i):
        address, predicated, operation, _ = code[i]
        back = operation == "BRA" and ways.targets.get(address, first + 1) <= first
        return back or (operation == "EXIT" and not predicated)

    way = ways.best(ways.place[last] + 1, ends, more)
    return -way[1] if way and way[0] else None
