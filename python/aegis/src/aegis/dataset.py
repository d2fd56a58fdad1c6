"""The rows of a data set, and tables of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Sequence, Union, overload

from .errors import AegisError, Corrupt, FutureFormat, PackageMissing
from .run import AnyPath

if TYPE_CHECKING:
    import datasets
    import pandas
    import polars

# The newest format of a row that is read.
FORMAT = 1


class Dataset(Sequence[dict[str, Any]]):
    """Rows of a data set: dicts with `id`, `kind`, `task`, `split`, `outcome`, `steps`, `label`, `clean_twin`, …."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = list(rows)

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> "Dataset": ...
    def __getitem__(self, at: Union[int, slice]) -> Union[dict[str, Any], "Dataset"]:
        return Dataset(self.rows[at]) if isinstance(at, slice) else self.rows[at]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def where(self, **wanted: Any) -> "Dataset":
        """The rows whose fields have these values: `where(kind="failure", split="train")`."""
        return Dataset([row for row in self.rows if all(row.get(key) == value for key, value in wanted.items())])

    def twin_of(self, row: dict[str, Any]) -> Any:
        """The clean run of the same task and system; None where there is none."""
        return next((one for one in self.rows if one["id"] == row.get("clean_twin")), None)

    def to_pandas(self) -> "pandas.DataFrame":
        """A row per run; nested fields stay objects. Raises `PackageMissing` without pandas."""
        try:
            import pandas
        except ImportError:
            raise _missing("pandas") from None
        return pandas.DataFrame(self.rows)

    def to_polars(self) -> "polars.DataFrame":
        """A row per run; nested fields are JSON text. Raises `PackageMissing` without polars."""
        try:
            import polars
        except ImportError:
            raise _missing("polars") from None
        return polars.DataFrame(self._columns(), strict=False)

    def to_datasets(self) -> "datasets.Dataset":
        """A Hugging Face data set, a row per run; nested fields are JSON text. Raises `PackageMissing` without datasets."""
        try:
            import datasets
        except ImportError:
            raise _missing("datasets") from None
        return datasets.Dataset.from_dict(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        """All fields that a row has, in order; what is nested in one row is JSON text in each."""
        names = list(dict.fromkeys(key for row in self.rows for key in row))
        columns = {name: [row.get(name) for row in self.rows] for name in names}
        for name, values in columns.items():
            if any(isinstance(value, (dict, list)) for value in values):
                columns[name] = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
        return columns

    def __repr__(self) -> str:
        return f"<Dataset of {len(self)} rows>"


def load_dataset(path: AnyPath) -> Dataset:
    """The rows of a data set: a file of JSON lines, or a directory with `dataset.jsonl`.

    Raises `AegisError` where it is not there, `Corrupt` with the line that cannot be read, `FutureFormat`.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "dataset.jsonl"
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise AegisError(f"there is no data set at `{file}`: expected JSON lines, as `aegis campaign` writes them") from None
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Corrupt(f"`{file}` line {number}: {error}") from error
        if not isinstance(row, dict) or not isinstance(row.get("format"), int):
            raise Corrupt(f"`{file}` line {number}: it is no row of a data set (`format` is missing)")
        if row["format"] > FORMAT:
            raise FutureFormat(f"`{file}` line {number} has format {row['format']}, this package reads up to {FORMAT}: install a newer one")
        rows.append(row)
    return Dataset(rows)


def _missing(package: str) -> PackageMissing:
    return PackageMissing(f"this needs the package `{package}`. Type: pip install {package}")
