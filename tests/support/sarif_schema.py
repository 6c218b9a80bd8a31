"""The JSON schema of SARIF 2.1.0, as OASIS publishes it and as the package `schemastore` ships it.

The package keeps the schemas as answers of a web server, pickled in a database.  They are not
unpickled here: the text of an answer is picked out of the stream.
"""

from __future__ import annotations

import json
import pickletools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator

IDENTITY = (
    "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json"
)


@cache
def validator() -> Draft7Validator:
    """What says whether a log is as the standard wants it."""
    schema = next(found for found in _schemas() if found.get("$id") == IDENTITY)
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def _schemas() -> Iterator[dict[str, Any]]:
    path = Path(str(distribution("schemastore").locate_file("schemastore/cache.sqlite")))
    opened = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    with closing(opened) as database:
        for (answer,) in database.execute("select value from responses"):
            if b"Static Analysis Results Format (SARIF) Version 2.1.0" in answer[:1000]:
                texts = (item for _, item, _ in pickletools.genops(answer))
                yield json.loads(next(item for item in texts if isinstance(item, bytes)))


def problems(log: Any) -> list[str]:
    """What is wrong with a log, with the place of each."""
    errors = validator().iter_errors(log)  # pyright: ignore[reportUnknownMemberType]
    return [f"{error.json_path}: {error.message}" for error in errors]
