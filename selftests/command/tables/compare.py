# SPDX-License-Identifier: GPL-2.0
"""
compare.py FILE TABLE: compares an unwind table, as dump prints it, with readelf -wF FILE

At the first byte of each row of readelf, and at the last byte before the next one, the table must
have the rule of the row. In gaps between entries, it must have no rule, except at the system call
of clone3(), which has that before the gap. Prints what differs, and the numbers of rows that were
compared.
"""
import bisect
import re
import subprocess
import sys


def readelf(*options):
    run = subprocess.run(["readelf", "-W", *options, sys.argv[1]], capture_output=True, text=True,
                         check=False)
    return run.stdout.splitlines()


def read_segments():
    """Returns the executable segments as (address, size, offset)."""
    segments = []
    for line in readelf("-l"):
        match = re.match(r" *LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ (...)", line)
        if match and "E" in match[4]:
            segments.append((int(match[2], 16), int(match[3], 16), int(match[1], 16)))
    return segments


def read_entries():
    """Returns the entries as (start, end, signal, [(address, {register: rule})])."""
    entries, cies, cie, columns, rows = [], {}, None, None, None
    for line in readelf("-wF"):
        match = re.match(r'([0-9a-f]{8}) [0-9a-f]{16} [0-9a-f]{8} CIE "(\w*)"', line)
        if match:
            cie = match[1]
            rows = []
            cies[cie] = (match[2], rows)
            continue
        match = re.match(r"[0-9a-f]{8} [0-9a-f]{16} [0-9a-f]{8} FDE cie=(\w+) "
                         r"pc=(\w+)\.\.(\w+)", line)
        if match:
            augmentation, initial = cies[match[1]]
            rows = []
            entries.append((int(match[2], 16), int(match[3], 16), "S" in augmentation, rows,
                            initial))
        elif line.startswith("   LOC"):
            columns = line.split()[1:]
        elif re.match(r"[0-9a-f]{16} \S", line):
            # A register's value can be in another one: "r8 (r8)".
            words = re.sub(r" \(\w+\)", "", line).split()
            rows.append((int(words[0], 16), dict(zip(columns, words[1:]))))
    result = []
    for start, end, signal, rows, initial in entries:
        if not rows or rows[0][0] > start:
            rows.insert(0, (start, initial[0][1]))
        if start:
            result.append((start, end, signal, rows))
    return result


def read_stubs():
    """Returns the linkage tables as [(start, end)]."""
    found = (re.match(r" *\[ *\d+\] \.plt\S* +PROGBITS +(\w+) \w+ (\w+)", line)
             for line in readelf("-S"))
    return [(int(match[1], 16), int(match[1], 16) + int(match[2], 16)) for match in found if match]


# The kinds of rules with a CFA in a register. Those that calls preserve have none.
KINDS = {"rsp": "sp", "rbp": "fp", "r11": "register6", "r10": "register7", "r9": "register8",
         "r8": "register9", "rax": "register10", "rcx": "register11", "rdx": "register12",
         "rsi": "register13", "rdi": "register14"}


def expected(rule, signal, place, stubs):
    """Returns the rule of the table for a row of readelf, as (kind, cfa, fp)."""
    cfa, address, frame = rule["CFA"], rule.get("ra", "c-8"), rule.get("rbp", "u")
    if address == "u":
        return "outermost", 0, 0
    if cfa == "exp" and signal:
        return "signal", 0, 0
    if cfa == "exp" and any(start <= place < end for start, end in stubs):
        return "sp", 16 if place % 16 >= 11 else 8, 0
    match = re.match(r"(r\w+)([+-]\d+)$", cfa)
    saved = re.match(r"c([+-]\d+)$", frame)
    if (not match or match[1] not in KINDS or address != "c-8" or
            not (saved or frame in ("u", "s"))):
        return "end", 0, 0
    return KINDS[match[1]], int(match[2]), int(saved[1]) if saved else 0


def main():
    offsets, rules = [], []
    with open(sys.argv[2], encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] != "name":
                offsets.append(int(words[0], 16))
                rules.append((words[1], int(words[2]), int(words[3])))
    if offsets != sorted(set(offsets)):
        sys.exit("the rows do not ascend")
    if any(a == b for a, b in zip(rules, rules[1:])):
        sys.exit("rows next to each other have the same rule")
    segments, stubs = read_segments(), read_stubs()

    def offset_of(address):
        return next((address - start + offset for start, size, offset in segments
                     if start <= address < start + size), None)

    def found(address):
        offset = offset_of(address)
        if offset is None:
            return None
        i = bisect.bisect_right(offsets, offset)
        return rules[i - 1] if i else ("none", 0, 0)

    with open(sys.argv[1], "rb") as file:
        code = file.read()

    def is_clone3(address, child):
        call, start = offset_of(address), offset_of(child)
        return (None not in (call, start) and code[call:call + 2] == b"\x0f\x05" and
                b"\x4c\x89\xc7\xff\xd2" in code[start:start + 11])

    failed = 0
    numbers = {}
    previous = 0
    for start, end, signal, rows in sorted(read_entries(), key=lambda entry: entry[0]):
        if previous < start and previous:
            calls = is_clone3(previous, start)
            for address in (previous, previous + 2, start - 1):
                want = ("none", 0, 0)
                if calls and address <= previous + 2:
                    want = found(previous - 1)
                if address < start and found(address) not in (None, want):
                    print(f"{address:x}: {found(address)} in a gap")
                    failed += 1
        previous = max(previous, end)
        for i, (address, rule) in enumerate(rows):
            after = rows[i + 1][0] if i + 1 < len(rows) else end
            for place in {address, after - 1}:
                want, got = expected(rule, signal, place, stubs), found(place)
                if got != want:
                    print(f"{place:x}: {got} for {rule}")
                    failed += 1
            numbers[want[0]] = numbers.get(want[0], 0) + 1
    print(numbers)
    if failed or numbers.get("sp", 0) < 2:
        sys.exit(f"{failed} differ")


main()
