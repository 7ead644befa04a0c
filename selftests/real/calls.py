# SPDX-License-Identifier: GPL-2.0
"""calls.py ROUNDS: uses CPU time in a known tree of calls.
calls.py --check FOLDED REPORT: compares the chains of profil export --format folded with it; but not
their shares if REPORT says that many ticks were missed, as on a busy machine."""

import math
import re
import sys

UNIT = 10000
# Of ten units of time, those of each chain
TREE = {
    ("main", "first", "burn"): 2,
    ("main", "second", "burn"): 1,
    ("main", "second", "third", "burn"): 4,
    ("main", "second", "third", "third", "burn"): 3,
}
SIGMAS = 5
MISSED_MAX = 5  # per cent


def burn(units):
    for _ in range(units * UNIT):
        pass


def first():
    burn(2)


def third(units):
    if units > 3:
        third(3)
    burn(units)


def second():
    burn(1)
    third(4)


def main(rounds):
    for _ in range(rounds):
        first()
        second()


def check(folded, report):
    missed = re.search(r"\(([0-9.]+)%\) were missed", open(report).read())
    is_exact = not missed or float(missed[1]) <= MISSED_MAX
    found, total = dict.fromkeys(TREE, 0), 0
    for line in open(folded, errors="replace"):
        chain, ticks = line.rstrip("\n").rsplit(" ", 1)
        chain = tuple(name.split(":")[2] for name in chain.split(";")
                      if name.startswith("py::") and "/calls.py" in name)
        if chain[-1:] != ("burn",):
            continue
        total += int(ticks)
        chain = chain[chain[0] == "<module>":]
        if chain in found:
            found[chain] += int(ticks)
    wrong = total < 1000
    for chain, units in TREE.items():
        share, want = found[chain] / max(total, 1), units / 10
        sigma = (share - want) / math.sqrt(want * (1 - want) / max(total, 1))
        print(f"{share:.1%}, expected {want:.1%}, {sigma:+.1f} sigma: {';'.join(chain)}")
        wrong |= found[chain] == 0 or is_exact and abs(sigma) > SIGMAS
    lost = 1 - sum(found.values()) / max(total, 1)
    print(f"{total} ticks in burn, {lost:.2%} in other chains")
    return wrong or lost > 0.01


if sys.argv[1] == "--check":
    sys.exit(check(*sys.argv[2:]))
main(int(sys.argv[1]))
