"""Results that show themselves: as text when printed, as a report in a notebook, as rows in a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars


class ShownResult:
    """A result of a question. What it looks like is said in `podium.present`, imported when it is asked for."""

    __slots__ = ()

    def __str__(self) -> str:
        from podium.present.results import text_of

        return text_of(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {str(self).partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        from podium.present.results import notebook_html

        return notebook_html(self)

    def to_document(self) -> dict[str, Any]:
        """The result as plain data, as the command writes it with `-o json`."""
        from podium.present.results import document_of

        return document_of(self)

    def to_frame(self) -> polars.DataFrame:
        """The rows that the command writes with `-o csv`. Needs polars: the extra `frames`."""
        from podium.present.results import frame_of

        return frame_of(self)
