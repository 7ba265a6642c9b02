"""The transaction port of durable work for every SQL engine: steps, waits, signals, artifacts, effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from relet.core import limits
from relet.core.model import Instants
from relet.core.payload import decode
from relet.core.rules.answer import decision_of
from relet.core.tx import TaskRow
from relet.core.work import Artifact, Checkpoint, Decision, Effect, EffectState, Saving, Step, Wait
from relet.core.work_tx import ArtifactRow, EffectRow, EvidenceRow, Kept, StepRow, WaitRow
from relet.store.rows import task_of
from relet.store.runner import Params, Runner
from relet.store.work_rows import (
    artifact_of,
    checkpoint_of,
    effect_of,
    effect_view,
    evidence_of,
    kept_of,
    question_of,
    step_of,
    wait_of,
)

WORK_STATEMENTS: Final = frozenset([
    "lock_step", "insert_step", "find_kept", "find_step", "find_steps", "find_saving", "find_seq", "find_checkpoints",
    "insert_artifact", "find_artifacts", "find_artifact", "lock_wait", "lock_question", "lock_last_wait",
    "find_parked", "lock_due_waits", "lock_reconciling", "insert_wait", "update_wait", "find_task_waits",
    "find_open_waits", "find_decisions", "lock_signal", "find_signal", "insert_signal", "take_signal",
    "count_signals", "lock_effect",
    "lock_started", "insert_effect", "update_effect", "insert_evidence", "lock_evidence", "find_open_effects",
    "find_effects", "find_task_effects", "find_effects_unsettled", "find_effect", "find_referenced", "find_named",
])  # fmt: skip

UNSETTLED: Final = (EffectState.STARTED, EffectState.UNKNOWN)


class SqlWork:
    """As the rules of durable work ask it."""

    run: Runner
    tenant: str

    # -- steps, checkpoints, artifacts ---------------------------------------------------------------------------

    async def lock_step(self, task_seq: int, name: str, slot: str) -> StepRow | None:
        row = await self.run.one("lock_step", {"task_seq": task_seq, "name": name, "slot": slot})
        return None if row is None else StepRow(*row)

    async def insert_step(self, row: StepRow) -> None:
        await self.run.do_row("insert_step", row)

    async def find_kept(self, task_seq: int, after: tuple[str, str], limit: int) -> list[Kept]:
        params = {"task_seq": task_seq, "name": after[0], "slot": after[1], "limit": limit}
        rows = await self.run.all("find_kept", {**params, "most": limits.MEMO_BYTES_MAX})
        return [kept_of(row) for row in rows]

    async def find_step(self, task_seq: int, name: str, slot: str) -> str | None:
        row = await self.run.one("find_step", {"task_seq": task_seq, "name": name, "slot": slot})
        return None if row is None else row[0]

    async def find_steps(
        self, task_seq: int, after: tuple[str, str], limit: int
    ) -> tuple[list[Step], tuple[str, str] | None]:
        params = {"task_seq": task_seq, "name": after[0], "slot": after[1], "limit": limit}
        rows = await self.run.all("find_steps", params)
        return [step_of(row) for row in rows], (rows[-1][1], rows[-1][2]) if len(rows) == limit else None

    async def find_saving(self, task_seq: int) -> Saving:
        row = await self.run.one("find_saving", {"task_seq": task_seq})
        assert row is not None, "an aggregate answers one row"
        return Saving(steps=row[0], took_ms=int(row[1]), cost=float(row[2]))

    async def find_seq(self, task_id: str) -> int | None:
        row = await self.run.one("find_seq", {"tenant": self.tenant, "id": task_id})
        return None if row is None else row[0]

    async def find_checkpoints(self, task_seq: int, name: str | None) -> list[Checkpoint]:
        return [
            checkpoint_of(row) for row in await self.run.all("find_checkpoints", {"task_seq": task_seq, "name": name})
        ]

    async def insert_artifact(self, row: ArtifactRow) -> None:
        await self.run.do_row("insert_artifact", row)

    async def find_artifacts(self, task_seq: int) -> list[Artifact]:
        return [artifact_of(row) for row in await self.run.all("find_artifacts", {"task_seq": task_seq})]

    async def find_artifact(self, task_seq: int, name: str) -> Artifact | None:
        row = await self.run.one("find_artifact", {"task_seq": task_seq, "name": name})
        return None if row is None else artifact_of(row)

    async def find_referenced(self, digests: Sequence[str]) -> list[str]:
        rows = await self.run.all("find_referenced", {"digests": msgspec.json.encode(digests).decode()})
        return [row[0] for row in rows]

    async def find_named(self, digests: Sequence[str], queues: Sequence[str] | None) -> list[str]:
        params = {
            "tenant": self.tenant, "digests": msgspec.json.encode(digests).decode(),
            "queues": None if queues is None else msgspec.json.encode(queues).decode(),
        }  # fmt: skip
        return [row[0] for row in await self.run.all("find_named", params)]

    # -- waits and signals ---------------------------------------------------------------------------------------

    async def lock_wait(self, seq: int) -> WaitRow:
        row = await self.run.one("lock_wait", {"seq": seq})
        assert row is not None, "pointed at by its task"
        return wait_of(row)

    async def lock_question(self, task_seq: int, name: str, n: int, digest: str) -> WaitRow | None:
        row = await self.run.one("lock_question", {"task_seq": task_seq, "name": name, "n": n, "digest": digest})
        return None if row is None else wait_of(row)

    async def lock_last_wait(self, task_seq: int, name: str) -> WaitRow | None:
        row = await self.run.one("lock_last_wait", {"task_seq": task_seq, "name": name})
        return None if row is None else wait_of(row)

    async def find_asker(self, task_seq: int) -> str | None:
        row = await self.run.one("find_parked", {"task_seq": task_seq})
        return None if row is None else decode(row[0]).get("key_id")

    async def lock_due_waits(self, limit: int) -> tuple[list[TaskRow], Instants]:
        at = await self.run.instants()
        rows = await self.run.all("lock_due_waits", {"wall_ms": at.wall_ms, "limit": limit})
        return [task_of(row) for row in rows], await self.run.instants()

    async def lock_reconciling(self, name: str) -> list[WaitRow]:
        return [wait_of(row) for row in await self.run.all("lock_reconciling", {"name": name, "tenant": self.tenant})]

    async def insert_wait(self, row: WaitRow) -> int:
        return await self._inserted("insert_wait", msgspec.structs.asdict(row))

    async def update_wait(self, row: WaitRow) -> None:
        await self.run.do_row("update_wait", row)

    async def find_waits(
        self, task_seq: int | None, queue: str | None, after: int, limit: int
    ) -> tuple[list[Wait], int | None]:
        params: Params = {"after": after, "limit": limit}
        if task_seq is not None:
            rows = await self.run.all("find_task_waits", {**params, "task_seq": task_seq})
        else:
            rows = await self.run.all("find_open_waits", {**params, "tenant": self.tenant, "queue": queue})
        return [question_of(row) for row in rows], rows[-1][3] if len(rows) == limit else None

    async def find_decisions(
        self, task_seq: int, name: str | None, after: int, limit: int
    ) -> tuple[list[Decision], int | None]:
        params = {"task_seq": task_seq, "name": name, "after": after, "limit": limit}
        rows = await self.run.all("find_decisions", params)
        return [decision_of(wait_of(row)) for row in rows], rows[-1][0] if len(rows) == limit else None

    async def lock_signal(self, task_seq: int, name: str) -> tuple[int, str] | None:
        row = await self.run.one("lock_signal", {"task_seq": task_seq, "name": name})
        return None if row is None else (row[0], row[1])

    async def find_signal(self, task_seq: int, call_id: str) -> int | None:
        row = await self.run.one("find_signal", {"task_seq": task_seq, "call_id": call_id})
        return None if row is None else row[0]

    async def insert_signal(
        self, task_seq: int, name: str, call_id: str, payload: str, wall_ms: int, taken_by: int | None
    ) -> None:
        await self.run.do("insert_signal", {
            "task_seq": task_seq, "name": name, "call_id": call_id, "payload": payload, "wall_ms": wall_ms,
            "taken_by": taken_by,
        })  # fmt: skip

    async def take_signal(self, seq: int, taken_by: int) -> None:
        await self.run.do("take_signal", {"seq": seq, "taken_by": taken_by})

    async def count_signals(self, task_seq: int) -> int:
        row = await self.run.one("count_signals", {"task_seq": task_seq})
        assert row is not None, "an aggregate answers one row"
        return int(row[0])

    # -- effects -------------------------------------------------------------------------------------------------

    def fingerprint(self, text: str) -> str:
        return self.run.fingerprint(text)

    async def lock_effect(self, effect_id: str) -> EffectRow | None:
        row = await self.run.one("lock_effect", {"tenant": self.tenant, "id": effect_id})
        return None if row is None else effect_of(row)

    async def lock_started(self, task_seq: int, token: int) -> list[EffectRow]:
        return [effect_of(row) for row in await self.run.all("lock_started", {"task_seq": task_seq, "token": token})]

    async def insert_effect(self, row: EffectRow) -> int:
        return await self._inserted("insert_effect", _stored(row))

    async def update_effect(self, row: EffectRow) -> None:
        await self.run.do("update_effect", _stored(row))

    async def lock_evidence(self, effect_seq: int) -> list[EvidenceRow]:
        return [evidence_of(row) for row in await self.run.all("lock_evidence", {"effect_seq": effect_seq})]

    async def insert_evidence(self, row: EvidenceRow) -> None:
        await self.run.do_row("insert_evidence", row)

    async def find_open_effects(self, task_seq: int) -> list[str]:
        return [row[0] for row in await self.run.all("find_open_effects", {"task_seq": task_seq})]

    async def find_effects(
        self, state: EffectState | None, task_id: str | None, after: str | None, limit: int
    ) -> list[Effect]:
        last = None if after is None else await self.lock_effect(after)
        params: Params = {"tenant": self.tenant, "state": state, "task_id": task_id, "limit": limit}
        name = "find_effects"
        if task_id is not None:
            name = "find_task_effects"
        elif state in UNSETTLED:
            name = "find_effects_unsettled"
        rows = await self.run.all(name, {**params, "after": 0 if last is None else last.seq})
        return [effect_view(row, await self.lock_evidence(row[2])) for row in rows]

    async def find_effect(self, effect_id: str) -> Effect | None:
        row = await self.run.one("find_effect", {"tenant": self.tenant, "id": effect_id})
        return None if row is None else effect_view(row, await self.lock_evidence(row[2]))

    async def _inserted(self, name: str, params: Params) -> int:
        made = await self.run.one(name, params)
        assert made is not None, "RETURNING answers the inserted row"
        return int(made[0])


def _stored(row: EffectRow) -> Params:
    return {**msgspec.structs.asdict(row), "contract": msgspec.json.encode(row.contract).decode()}
