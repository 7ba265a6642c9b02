"""What a rule that looks at a whole store may ask; none of it locks, none of it reads all that has finished."""

from __future__ import annotations

from typing import Any, Protocol


class FiguresTx(Protocol):
    """As `Tx`, for figures."""

    async def count_tasks(self, queue: str | None) -> list[dict[str, Any]]: ...
    async def count_rejections(self) -> dict[str, int]: ...
