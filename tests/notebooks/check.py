#!/usr/bin/env python3
"""Runs a notebook and compares what it prints with the outputs in its file.

    check.py NOTEBOOK NBCONVERT SIMSYNC FOLDER

NBCONVERT runs the notebook with the program SIMSYNC. Its copy and its pictures go to FOLDER, so that no file of the repository changes.
Texts must be equal; numbers may differ by 1 %, or by 0.002, because linear algebra rounds differently from machine to machine.
Exit code 1: a cell fails or prints something else.
"""
import json
import os
import re
import subprocess
import sys

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def printed(path):
    """What each cell prints, in order."""
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    texts = []
    for cell in cells:
        if cell["cell_type"] == "code":
            texts.append("".join("".join(output.get("text", "")) for output in cell["outputs"]))
    return texts


def same_line(line, expected):
    """Equal up to the rounding of numbers and the spaces that align them."""
    if NUMBER.sub("#", line).split() != NUMBER.sub("#", expected).split():
        return False
    for a, b in zip(NUMBER.findall(line), NUMBER.findall(expected)):
        a, b = float(a), float(b)
        if abs(a - b) > max(0.002, 0.01 * abs(b)):
            return False
    return True


def first_difference(text, expected):
    """The first line that differs, as a message; None: there is none."""
    lines, expected_lines = text.splitlines(), expected.splitlines()
    for line, wanted in zip(lines, expected_lines):
        if not same_line(line, wanted):
            return f"printed:  {line}\nexpected: {wanted}"
    if len(lines) != len(expected_lines):
        return f"printed {len(lines)} lines, expected {len(expected_lines)}"
    return None


def main(notebook, nbconvert, simsync, folder):
    os.makedirs(folder, exist_ok=True)
    environment = {**os.environ, "SIMSYNC": simsync, "SIMSYNC_FIGURES": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([nbconvert, "--to", "notebook", "--execute", "--output-dir", folder, "--log-level", "ERROR", notebook],
                   cwd=os.path.dirname(notebook), env=environment, check=True)
    again = printed(os.path.join(folder, os.path.basename(notebook)))
    before = printed(notebook)
    if not any(before):
        sys.exit(f"{notebook} has no outputs: run it and commit it with them")
    for text, expected in zip(again, before):
        difference = first_difference(text, expected)
        if difference:
            sys.exit(f"{notebook} prints something else than in its file:\n{difference}")


if __name__ == "__main__":
    main(*sys.argv[1:])
