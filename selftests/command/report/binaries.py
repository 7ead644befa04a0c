# SPDX-License-Identifier: GPL-2.0
#
# binaries.py KIND NUMBER...: writes a small ELF file that costs much to read, to standard output
#
# All files have their code at offset and address 0x1000, except for those of the kind "sections".
#
#	sections N	a file without code that claims N section headers, in a hole at its end
#	notes N		N program headers that describe the same megabyte of notes
#	headers N	N program headers, all before the one of the code; N may be more than 65,535
#	ranges N M	a unit and M functions in it, whose ranges are the same N
#	names N SIZE	N functions, whose names are suffixes of one string of SIZE characters
#	equal N SIZE	N functions at one address, with the same name of SIZE characters
#	endless N	N functions whose names have no end
#	registers R N	an unwind table with a rule for register R, and then N states to remember
#	zeros SIZE	a compressed line table of SIZE bytes
#	file SIZE	a line table that names a file with SIZE characters

import os
import struct
import sys
import zlib

TEXT = 0x1000


def uleb(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def file_header(phoff, phnum, shoff, shnum, names):
    ident = b"\x7fELF\2\1\1".ljust(16, b"\0")
    return ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, phoff, shoff, 0, 64, 56, phnum,
                               64, shnum, names)


def segment(kind, offset, size):
    return struct.pack("<IIQQQQQQ", kind, 5, offset, offset, offset, size, size, 4)


def section(name, kind, flags, offset, size, link=0, info=0, entry=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, offset, offset, size, link, info, 8,
                       entry)


def program(sections, text_size=0x1000, segments=b"", loads=1):
    """Returns a file with code, and with sections of (name, type, flags, link, entry, data)."""
    names = b"\0.text\0.shstrtab\0"
    code = TEXT + len(segments) // 0x1000 * 0x1000 if segments else TEXT
    body = b"\x90" * text_size
    count = len(segments) // 56 + loads
    headers = section(0, 0, 0, 0, 0, info=count) + section(1, 1, 6, code, text_size)
    for name, kind, flags, link, entry, data in sections:
        at = code + len(body)
        headers += section(len(names), kind, flags, at, len(data), link, 1, entry)
        names += name + b"\0"
        body += data + b"\0" * (-len(data) % 8)
    at = code + len(body)
    headers += section(7, 3, 0, at, len(names))
    body += names + b"\0" * (-len(names) % 8)
    segments += segment(1, 0, at) * loads
    header = file_header(64, min(count, 0xffff), code + len(body), len(headers) // 64, len(headers) // 64 - 1)
    return (header + segments).ljust(code, b"\0") + body + headers


def symbols(functions, strings):
    """Returns sections with functions of (name, address, size)."""
    table = bytes(24) + b"".join(struct.pack("<IBBHQQ", name, 0x12, 0, 1, address, size)
                                 for name, address, size in functions)
    return [(b".symtab", 2, 0, 3, 24, table), (b".strtab", 3, 0, 0, 0, strings)]


def names(number, size):
    strings = b"\0" + b"n" * (size + number) + b"\0"
    return program(symbols([(1 + i, TEXT + 16 * i, 16) for i in range(number)], strings),
                   16 * number)


def equal(number, size):
    return program(symbols([(1, TEXT, 16)] * number, b"\0" + b"e" * size + b"\0"))


def endless(number):
    strings = b"\0" + b"u" * (1 << 20)
    return program(symbols([(1 + i, TEXT + 16 * i, 16) for i in range(number)], strings),
                   16 * number)


def registers(register, number):
    def entry(body):
        body += b"\0" * (-(len(body) + 4) % 8)
        return struct.pack("<I", len(body)) + body

    cie = entry(struct.pack("<I", 0) + b"\1zR\0" + uleb(1) + b"\x78" + uleb(16) + uleb(1) +
                b"\x1b\x0c\7\x08\x90\1")
    at = TEXT + 0x1000 + len(cie) + 8
    rules = b"\x08" + uleb(register) + b"\x0a" * number
    fde = entry(struct.pack("<IiI", len(cie) + 4, TEXT - at, 0x1000) + b"\0" + rules)
    return program([(b".eh_frame", 1, 2, 0, 0, cie + fde + bytes(4))])


def lines(table):
    """Returns a program whose line table is the data, compressed."""
    abbreviations = bytes([1, 0x11, 0, 0x11, 1, 0x12, 7, 0x10, 0x17, 0, 0, 0])
    unit = struct.pack("<HIBBQQI", 4, 0, 8, 1, TEXT, 0x1000, 0)
    size = sum(len(part) for part in table())
    pack = zlib.compressobj(1)
    packed = struct.pack("<IIQQ", 1, 0, size, 1)
    packed += b"".join(pack.compress(part) for part in table()) + pack.flush()
    return program([(b".debug_info", 1, 0, 0, 0, struct.pack("<I", len(unit)) + unit),
                    (b".debug_abbrev", 1, 0, 0, 0, abbreviations),
                    (b".debug_line", 1, 0x800, 0, 0, packed)])


def ranges(number, functions):
    abbreviations = bytes([1, 0x11, 1, 0x11, 1, 0x55, 0x17, 0, 0, 2, 0x2e, 0, 0x55, 0x17, 0, 0, 0])
    unit = struct.pack("<HIBBQI", 4, 0, 8, 1, 0, 0) + b"\2\0\0\0\0" * functions + b"\0"
    # The last range has the code.
    table = struct.pack("<QQ", 1 << 40, 1 << 41) * number
    table += struct.pack("<QQQQ", TEXT, TEXT + 0x1000, 0, 0)
    return program([(b".debug_info", 1, 0, 0, 0, struct.pack("<I", len(unit)) + unit),
                    (b".debug_abbrev", 1, 0, 0, 0, abbreviations),
                    (b".debug_ranges", 1, 0, 0, 0, table)])


def zeros(size):
    return lines(lambda: (bytes(1 << 20) for _ in range(size >> 20)))


def file(size):
    before = b"\1\1\1\xfb\x0e\x0d" + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + b"\0/"
    code = b"\0\x09\2" + struct.pack("<Q", TEXT) + b"\1\2\x80\x20\0\1\1"
    length = len(before) + size + 5
    head = struct.pack("<H", 4) + struct.pack("<Q", length) + before
    total = len(head) + size + 5 + len(code)

    def table():
        yield b"\xff" * 4 + struct.pack("<Q", total) + head
        for left in range(size, 0, -(1 << 20)):
            yield b"f" * min(left, 1 << 20)
        yield bytes(5) + code
    return lines(table)


def write(kind, numbers):
    out = sys.stdout.buffer
    if kind == "sections":
        out.write(file_header(0, 0, 64, 0, 0) + section(0, 0, 0, 0, numbers[0]))
        out.flush()
        os.ftruncate(1, 64 * (1 + numbers[0]))
    elif kind == "notes":
        out.write(program([], 1 << 20, segment(4, TEXT, 1 << 20) * numbers[0]))
    elif kind == "headers":
        out.write(program([], 1 << 20, segment(1, 1 << 40, 1) * numbers[0]))
    else:
        out.write({"names": names, "equal": equal, "endless": endless, "registers": registers,
                   "ranges": ranges, "zeros": zeros, "file": file}[kind](*numbers))


write(sys.argv[1], [int(number) for number in sys.argv[2:]])
