"""Every maximum and default of core/limits.py as tables."""

from __future__ import annotations

from typing import Final

from docs.generator.markdown import code, table
from relet.core import limits
from relet.core.model import date

UNITS: Final = ((limits.DAY_MS, "d"), (limits.HOUR_MS, "h"), (limits.MINUTE_MS, "min"), (limits.SECOND_MS, "s"))

GROUPS: Final[dict[str, dict[str, str]]] = {
    "limits of what is handed in": {
        "PAYLOAD_BYTES_MAX": "One JSON value (input, checkpoint, result), encoded.",
        "PAYLOAD_DEPTH_MAX": "How deep such a value may be nested.",
        "ID_CHARS_MAX": "A task's id.",
        "NAME_CHARS_MAX": "Any other name: queue, kind, holder, checkpoint, tenant, key of a label.",
        "TEXT_CHARS_MAX": "An error or a reason. The client cuts longer ones; of other programs they are refused.",
        "FIELD_CHARS_SHOWN": "The path of what was refused, as it is shown.",
        "LABELS_MAX": "Labels of one task.",
        "HANDLE_CHARS_MAX": "A handle.",
        "SECRET_CHARS_MIN": "The least of a value that is kept out of logs, errors and pages.",
        "PRIORITY_MAX": "A priority, and its negative.",
        "SUBMIT_ITEMS_MAX": "Tasks in one submit.",
        "CLAIM_ITEMS_MAX": "Tasks in one claim.",
        "RENEW_ITEMS_MAX": "Leases in one renewal.",
        "COMPLETE_ITEMS_MAX": "Results in one completion.",
        "QUEUES_PER_CLAIM_MAX": "Queues in one claim.",
        "KINDS_PER_CLAIM_MAX": "Kinds in one claim.",
        "PAGE_ITEMS": "A page, unless asked otherwise.",
        "PAGE_ITEMS_MAX": "A page.",
        "READY_SORTED": "Ready tasks that are sorted for a page of them; with more, the page is read from all.",
        "BULK_ITEMS_MAX": "Tasks in one batch of a bulk verb; the client goes on batch by batch.",
        "ATTEMPTS_MAX": "What `max_attempts` and `max_losses` may be set to.",
        "NTH_MAX": "Which call, question or try of one name it is.",
        "COST_MAX": "What one step may cost.",
        "CONCURRENCY_MAX": "What `concurrency` of a queue, of a share and of a handler may be set to.",
        "QUEUES_PER_KEY_MAX": "Queues that an API key is bound to.",
        "RATE_MAX": "Grants in the time of a `rate`.",
        "RATE_MS_MAX": "The time of a `rate`.",
        "RATE_BURST_SHARE": "Of a rate's grants, what a queue that has rested lets through at once.",
    },
    "limits of durations": {
        "TTL_MS": "The ttl where nobody sets one.",
        "TTL_MS_MIN": "The least ttl.",
        "TTL_MS_MAX": "The longest ttl.",
        "DURATION_MS_MAX": "Any duration.",
        "WALL_MS_MAX": "The latest date; a later one could not be shown in every zone.",
        "STORE_TIME_DELAY_MS_MAX": "Delays up to this count in store time, longer ones by the wall clock.",
        "WAIT_MS_MAX": "One wait for a task or a result.",
    },
    "limits of attempts": {
        "MAX_ATTEMPTS": "`max_attempts` where nobody sets it.",
        "MAX_LOSSES": "`max_losses` where nobody sets it.",
        "BACKOFF_BASE_MS": "The wait before the first retry; it doubles from there.",
        "BACKOFF_CAP_MS": "The longest wait before a retry.",
        "JITTER": "Up to this share of a delay is added to it, never taken from it.",
    },
    "limits of lapses": {
        "LAPSES_PER_BATCH": "Lapsed leases that one transaction closes.",
        "LAPSE_BATCHES_PER_CLAIM": "Such batches that one claim closes before it answers.",
        "LAPSES_PER_SECOND": "More lapses than this in one second are a crowd, and spread out.",
        "LAPSE_SPREAD_MS_MAX": "Over how long a crowd is spread (at most the ttl).",
        "READY_PAGE": "Ready tasks that a claim looks at together.",
        "PROMOTED_PER_CLAIM": "Delayed tasks that are due and join the ready ones in one claim.",
    },
    "limits of advice": {
        "ADVICE_LEASES": "The newest leases of the store that are looked at.",
        "ADVICE_LEASES_LEAST": "Fewer leases of a queue, and nothing is advised.",
        "ADVICE_HOLD_LEAST": "Fewer finished ones, and no `max_hold` is advised.",
        "ADVICE_TTL_MS_LEAST": "No shorter ttl is advised.",
        "ADVICE_FROZEN": "Holders that were silent for more ttls than this were stopped, and are not counted.",
    },
    "limits of the doctor": {
        "DOCTOR_WAL_BYTES": "A longer write-ahead log is a finding.",
        "DOCTOR_FREE_BYTES": "Less room on the disk is a finding.",
        "DOCTOR_TTL_MS": "Leases with a shorter ttl are a finding.",
        "DOCTOR_UNCLAIMED_MS": "Tasks that are ready for longer, and that nobody takes, are a finding.",
        "DOCTOR_EFFECT_MS": "Effects that are unknown for longer are a finding.",
        "DOCTOR_QUESTION_MS": "Questions that are open for longer, and have no time limit, are a finding.",
        "DOCTOR_OVERDUE_MS": "Waits whose time is over for longer are a finding.",
        "DOCTOR_DEAD_MS": "Dead letters are a finding for so long.",
        "DOCTOR_REPEATS": "So many leases of a task, each given back at once with nothing kept, are a finding.",
        "DOCTOR_LOSSES_LEAST": "Fewer lapses of a kind are none,",
        "DOCTOR_LOSS_SHARE": "and so is a smaller share of its leases.",
        "DOCTOR_LEASES": "The newest leases of the store that are looked at,",
        "DOCTOR_RECENT_MS": "and none that was granted before.",
        "DOCTOR_TENANTS": "Tenants that are looked at in one go; one more is a finding.",
        "DOCTOR_QUEUES": "Queues of each tenant that are looked at.",
        "DOCTOR_READY": "Ready tasks of each queue that are looked at, those that a claim would meet first.",
        "DOCTOR_DEAD": "Dead letters that are looked at, the newest.",
    },
    "limits of trust": {
        "MARGIN_MS_MIN": "A holder stops trusting its lease at least this long before the store ends it,",
        "MARGIN_SHARE": "and at least this share of the ttl before,",
        "MARGIN_SHARE_MAX": "but never more than this share.",
        "RENEW_SHARE": "The time between heartbeats, as a share of the ttl.",
        "LATE_SHARE": "A renewal that comes with less of the ttl left is noted as late.",
        "RENEW_SHARE_MAX": "The longest time between heartbeats, as a share of the ttl.",
        "DIVERGENCE_MS_MAX": "When the wall clock and the holder's clock drift apart by more, the holder doubts.",
    },
    "limits of durable work": {
        "CHECKPOINTS_KEPT": "Versions of one checkpoint that are kept; older ones make room.",
        "FILE_BYTES_MIN": "From this size on a value is kept as a file, beside the store.",
        "MEMO_BYTES_MAX": "A kept result up to this size is read with its page; a larger one when it is used.",
        "MEMO_ITEMS": "Kept steps that a holder reads together.",
        "STEP_ATTEMPTS_MAX": "Tries of one step under one lease.",
        "DECISIONS_PER_PAGE": "Decisions that a holder reads together.",
        "EVIDENCE_KEPT": "Late words about one effect, and tries of it whose starters are remembered.",
        "SIGNALS_KEPT": "Signals of one task that nobody has taken.",
        "EFFECT_TIMEOUT_MS": "How long one try of an effect may take, unless the call says otherwise.",
        "TRANSACTION_S_MAX": "One transaction of your own on the store's database,",
        "TRANSACTION_SHARE": "and at most this share of the shortest ttl that its process holds.",
    },
    "limits of artifacts": {
        "ARTIFACT_BYTES_MAX": "One artifact.",
        "ARTIFACT_WHOLE_BYTES_MAX": "Up to this size it is checked before its first byte is handed out.",
        "ARTIFACT_AGE_MS": "How long bytes that nobody names are kept, unless a collection is told otherwise.",
        "ARTIFACT_AGE_MS_MIN": "The least that it may be told: younger ones may belong to a commit under way.",
        "ARTIFACT_REUSE_MS_MAX": "Bytes that a bucket has had for longer are stored again, not relied on.",
        "ARTIFACT_LOCK_MS_MAX": "How long a put waits for a collection of the same folder, and the other way round.",
        "ARTIFACTS_PER_BATCH": "Artifacts that a collection asks about together.",
    },
    "limits of fences": {
        "FENCE_PATIENCE_MS": "The wait for a lock of a target, where nobody sets `patience`.",
        "FENCE_IDLE_MS": "The pause between two statements in a block of PostgreSQL, where nobody sets `idle`.",
        "FENCE_TRIES": "How often a pointer or a ref is tried that somebody else moves each time.",
        "FENCE_ITEMS_MAX": "Objects, commands or branches in one block.",
        "FENCE_NAME_CHARS_MAX": "A resource as part of a path, a key or a ref; longer ones are cut and get a digest.",
        "FENCE_GIT_MS": "One command of git, where nobody sets `timeout`.",
    },
    "limits of upkeep": {
        "PRUNE_AGE_MS_MIN": "The least age at which a finished task may leave.",
        "PRUNE_ITEMS_MAX": "Tasks that leave in one transaction,",
        "PRUNE_ROWS": "and events after which it ends all the same.",
        "PRUNE_SPAN": "Tasks that it looks at.",
        "RECEIPTS_KEPT_MS": "How long a receipt is kept at least, and its task with it.",
        "FINDINGS_MAX": "Findings that `verify` names before it stops.",
    },
    "limits of feeds": {
        "AUDIT_ITEMS_MAX": "Lines of the audit log that are written together.",
        "AUDIT_PRUNED_MAX": "Lines of the audit log that are removed together.",
        "AUDIT_BATCHES_MAX": "How often in one command.",
        "AUDIT_KEPT_MS": "How old they must be for that, without `--recent-too`.",
        "REJECTIONS_KEPT": "Refused writes that are remembered; older ones make room.",
    },
    "limits of tokens": {
        "TOKEN_BITS": "Bits of a token that count grants; those above are the epoch.",
        "TOKEN_MAX": "The largest token. Every JSON reader keeps it exact.",
        "TOKEN_BLOCK": "Tokens covered by one write of the file beside the store.",
    },
}
NOT_LIMITS: Final = {"SECOND_MS", "MINUTE_MS", "HOUR_MS", "DAY_MS"}


def parts() -> dict[str, str]:
    """One table for each group; raises LookupError when a limit is in no group, or is gone."""
    names = {name for name in vars(limits) if name.isupper()} - NOT_LIMITS
    told = {name for group in GROUPS.values() for name in group}
    if names != told:
        raise LookupError(f"limits without a line in docs/generator/maxima.py, or lines without one: {names ^ told}")
    heads = ["name", "value", "of what"]
    return {
        title: table(heads, [[code(name), shown(name), text] for name, text in group.items()])
        for title, group in GROUPS.items()
    }


def shown(name: str) -> str:
    """A limit as a reader says it."""
    value = getattr(limits, name)
    if "WALL" in name:
        return f"{date(value):%Y-%m-%d}"
    if name.endswith("_MS") or "_MS_" in name:
        for size, unit in UNITS:
            if value >= size and value % size == 0:
                return f"{value // size:,} {unit}"
        return f"{value} ms"
    if "SHARE" in name or name == "JITTER":
        return f"{value * 100:.0f} %"
    if "BYTES" in name and value % (1 << 30) == 0:
        return f"{value >> 30} GiB"
    if "BYTES" in name:
        return f"{value >> 20} MiB" if value >= 1 << 20 else f"{value >> 10} KiB"
    if "_S_" in name:
        return f"{value:g} s"
    return f"{value:,}"
