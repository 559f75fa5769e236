"""Copies of studies with other settings, for the scripts beside this file."""
import os
import re

VALIDATE = os.path.dirname(os.path.abspath(__file__))


def write_study(folder, study, line):
    """A copy of a study, whose path it returns, with one more line of `settings:`, which wins over the others."""
    with open(os.path.join(VALIDATE, "studies", study + ".yaml")) as file:
        text = file.read()
    if line:
        found = re.search(r"(?m)^settings:.*\n(?:(?: .*|\s*)\n)*", text)
        text = text[:found.end()] + line + text[found.end():] if found else text + "settings:\n" + line
    tree = os.path.join(folder, "with-settings")   # what studies name lies beside their folder
    os.makedirs(os.path.join(tree, "studies"), exist_ok=True)
    for entry in os.scandir(VALIDATE):
        link = os.path.join(tree, entry.name)
        if entry.is_dir() and not os.path.lexists(link):
            os.symlink(entry.path, link)
    path = os.path.join(tree, "studies", study + ".yaml")
    with open(path, "w") as file:
        file.write(text)
    return path
