"""What the notebooks share: the program, where pictures go, and tables."""
import csv
import os
import pathlib

SIMSYNC = os.environ.get("SIMSYNC", "simsync")
FIGURES = os.environ.get("SIMSYNC_FIGURES", str(pathlib.Path(__file__).parent.parent / "docs"))


def read_rows(path):
    """Rows of a CSV table as dictionaries of texts."""
    with open(path, newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))
