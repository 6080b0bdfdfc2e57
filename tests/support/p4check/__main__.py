"""`python -m p4check FILE..` checks top files; exit code 1 if one is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

from . import P4Error, check, read


def main(files: list[str]) -> int:
    wrong = 0
    for file in files:
        try:
            check(read(Path(file)))
        except P4Error as error:
            print(error, file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
