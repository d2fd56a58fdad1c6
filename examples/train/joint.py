"""How many failures of a campaign have each failure mode together with each number of planted targets.

    python3 joint.py DATASET

Ends with 1 where a pair is absent: then the number of targets tells something of the mode.
"""

import json
import sys
from collections import Counter
from pathlib import Path


def pairs(rows):
    """Counts of (mode, number of targets), over all errors that were planted, needed or not; a failure counts once a mode."""
    found = Counter()
    for label in (row["label"] for row in rows if row["kind"] == "failure"):
        planted = [error for kind in ("errors", "others", "not_shown") for error in label.get(kind) or []]
        targets = len({error["injection"] for error in planted})
        found.update((mode, targets) for mode in {error["failure_mode"]["code"] for error in planted})
    return found


def main():
    """Prints the table."""
    source = Path(sys.argv[1])
    source = source / "dataset.jsonl" if source.is_dir() else source
    found = pairs(json.loads(line) for line in source.read_text().splitlines())
    modes, targets = (sorted(set(values)) for values in zip(*found))
    print("| mode | " + " | ".join(f"of {number}" for number in targets) + " |")
    print("|---|" + "--:|" * len(targets))
    for mode in modes:
        print(f"| {mode} | " + " | ".join(str(found[mode, number]) for number in targets) + " |")
    sys.exit(any(not found[mode, number] for mode in modes for number in targets))


if __name__ == "__main__":
    main()
