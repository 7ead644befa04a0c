# SPDX-License-Identifier: GPL-2.0
"""words.py ROUNDS FILE...: counts the words of a text, and does other typical work of scripts."""

import collections
import hashlib
import json
import re
import sys


class Node:
    def __init__(self):
        self.children = {}
        self.count = 0


def add(root, word):
    node = root
    for letter in word:
        child = node.children.get(letter)
        if child is None:
            child = node.children[letter] = Node()
        node = child
    node.count += 1


def depth(node):
    return 1 + max((depth(child) for child in node.children.values()), default=0)


def main():
    text = "".join(open(name, errors="replace").read() for name in sys.argv[2:])
    for _ in range(int(sys.argv[1])):
        words = re.findall(r"[A-Za-z_]\w+", text)
        counts = collections.Counter(words)
        root = Node()
        for word in words:
            add(root, word)
        encoded = json.dumps(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
        assert json.loads(encoded)[0][1] == max(counts.values())
        squares = sum(x * x % 7 for x in range(50000))
    print(len(words), depth(root), squares, hashlib.sha1(encoded.encode()).hexdigest()[:8])


main()
