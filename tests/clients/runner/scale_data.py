"""What the suite `scale` compares: what an engine made with what one machine made."""

DATA = ("dataset.jsonl", "benign.jsonl", "dataset.json")


def compared(report, what, folder, out):
    """The data set that was put together is the one that one machine made, byte for byte."""
    for name in DATA:
        one, other = (folder / "whole" / name, folder / out / "merged" / name)
        equal = one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()
        report.check(f"{what}: {name} is the one machine's", equal, f"{other} differs or is missing")
