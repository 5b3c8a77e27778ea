#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a class with too many members or methods, and on a very long source file.

Counted are the classes in headers of the product; a struct is passive data. Constructors, destructors, operators,
deleted functions and constants do not count.

usage: classes_stay_small.py SOURCE_DIR
"""

import os
import pathlib
import re
import sys

MOST_MEMBERS = 20
MOST_METHODS = 26
MOST_LINES = 900
ENDINGS = {".c", ".cpp", ".h", ".py"}
OUTSIDE = {"build", ".git"}
# Too large today. An entry goes when its class is split; no entry is added.
TOO_LARGE_TODAY = {"GuardWatch", "RunHistory", "ScreenLoop", "Session", "GuardThread"}

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.)*|"(?:[^"\\\n]|\\.)*"|'
                   r"(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'", re.DOTALL | re.MULTILINE)
CLASS = re.compile(r"\bclass\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*(\w+)(?:\s+final)?\s*(?::[^;{]*)?\{")
NOT_COUNTED = re.compile(r"^(using|typedef|friend|enum|struct|class|union|static_assert|static constexpr|"
                         r"static inline constexpr|static const|constexpr static|template\b.*\b(class|struct) \w+$)\b")
ACCESS = re.compile(r"^(public|protected|private)\s*:(?!:)")


def body_of(text, opening):
    """What is between the brace at `opening` and the one that closes it."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[opening + 1:at]
    return text[opening + 1:]


def declarations(body):
    """Those of the class itself, each without what is in its braces."""
    depth = 0
    brackets = 0
    found = ""
    for letter in body:
        if letter == "{":
            depth += 1
            continue
        if letter == "}":
            depth -= 1
            # A function ends with its body; a member or a lambda in an argument goes on.
            if depth == 0 and brackets == 0 and re.search(r"\)[^=;]*$", found):
                yield found
                found = ""
            continue
        if depth > 0:
            continue
        brackets += {"(": 1, ")": -1}.get(letter, 0)
        if letter == ";" and brackets == 0:
            yield found
            found = ""
        else:
            found += letter


def kind_of(declaration, name):
    """"method", "member" or None."""
    text = " ".join(declaration.split())
    while ACCESS.match(text):
        text = ACCESS.sub("", text, count=1).strip()
    text = re.sub(r"^(\[\[[^\]]*\]\]\s*)+", "", text)
    if not text or NOT_COUNTED.match(text):
        return None
    text = re.sub(r"alignas\([^)]*\)\s*", "", text)
    if "operator" in text or re.search(r"=\s*(delete|default)$", text):
        return None
    head = text.split("=")[0]
    callable_name = re.search(r"(~?\w+)\s*\(", head)
    before = head[:callable_name.start()] if callable_name else head
    if not callable_name or "std::function<" in before or re.search(r"\(\s*\*\s*\w+(\[\w+\])?\s*\)", head):
        return "member"
    return None if callable_name[1].lstrip("~") == name else "method"


def classes(text):
    """(name, members, methods) of each class."""
    text = NOISE.sub(" ", text)
    for match in CLASS.finditer(text):
        if re.search(r"\benum\s*$", text[:match.start()]):
            continue
        kinds = [kind_of(each, match[1]) for each in declarations(body_of(text, match.end() - 1))]
        yield match[1], kinds.count("member"), kinds.count("method")


def files(root):
    for folder, below, names in os.walk(root):
        below[:] = sorted(set(below) - OUTSIDE)
        for path in (pathlib.Path(folder) / name for name in sorted(names)):
            if path.suffix in ENDINGS:
                yield path


def too_large(root, exceptions=frozenset(TOO_LARGE_TODAY)):
    seen = set()
    for path in files(root):
        name = path.relative_to(root)
        lines = path.read_bytes().count(b"\n")
        if lines > MOST_LINES:
            yield f"{name} has {lines} lines; at most {MOST_LINES}: what else does it hold?"
        if path.suffix != ".h" or name.parts[0] == "tests":
            continue
        for each, members, methods in classes(path.read_text()):
            if members <= MOST_MEMBERS and methods <= MOST_METHODS:
                continue
            seen.add(each)
            if each not in exceptions:
                yield (f"{name}: {each} has {members} members and {methods} methods; at most "
                       f"{MOST_MEMBERS} and {MOST_METHODS}: which part of it is a class of its own?")
    for each in sorted(exceptions - seen):
        yield f"{each} is small now: take it from the list of exceptions"


def main():
    found = list(too_large(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "no class and no file is too large")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
