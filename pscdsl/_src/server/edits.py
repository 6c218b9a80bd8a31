"""The files of a check after an edit: what is known of the others is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pscdsl._src.frontend.modules.files import Files


def changed(files: Files, contents: Mapping[str, bytes], reread: Sequence[str] = ()) -> Files:
    """The same files with other contents in some, and some as they are on disk now."""
    return files.changed(contents, reread)
