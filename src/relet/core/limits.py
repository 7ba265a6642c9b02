"""Every maximum and every default, in one place; passing a maximum is a named error."""

from __future__ import annotations

from typing import Final

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

# What a caller may hand in.
PAYLOAD_BYTES_MAX: Final = 1 << 20
PAYLOAD_DEPTH_MAX: Final = 100
ID_CHARS_MAX: Final = 200
NAME_CHARS_MAX: Final = 200
TEXT_CHARS_MAX: Final = 10_000
FIELD_CHARS_SHOWN: Final = 1_000
"""Of a path to what was refused."""
LABELS_MAX: Final = 32
HANDLE_CHARS_MAX: Final = 2_000
SECRET_CHARS_MIN: Final = 6
"""What is shorter is found in other words too often to be taken out of all texts."""
PRIORITY_MAX: Final = 1_000_000
SUBMIT_ITEMS_MAX: Final = 10_000
CLAIM_ITEMS_MAX: Final = 1_000
RENEW_ITEMS_MAX: Final = 100_000
COMPLETE_ITEMS_MAX: Final = 10_000
QUEUES_PER_CLAIM_MAX: Final = 1_000
KINDS_PER_CLAIM_MAX: Final = 1_000
PAGE_ITEMS: Final = 100
PAGE_ITEMS_MAX: Final = 1_000
READY_SORTED: Final = 10_000
"""Ready tasks that are sorted for a page; with more of them the page is read in the order of all tasks."""
BULK_ITEMS_MAX: Final = 500
ATTEMPTS_MAX: Final = 10_000
NTH_MAX: Final = 999_999_999
"""Of one name: which call, which question, which try. Engines count them in 32 bits."""
COST_MAX: Final = 1e12
"""Of a step: sums of such numbers are numbers still."""
CONCURRENCY_MAX: Final = 100_000
"""Of a queue, or of one share of it."""
QUEUES_PER_KEY_MAX: Final = 100
"""That an API key is bound to."""
RATE_MAX: Final = 1_000_000
RATE_MS_MAX: Final = DAY_MS
RATE_BURST_SHARE: Final = 0.1
"""Of a rate's grants: so many a queue that has rested lets through at once, and no more."""

# Durations.
TTL_MS: Final = MINUTE_MS
TTL_MS_MIN: Final = 100
TTL_MS_MAX: Final = DAY_MS
DURATION_MS_MAX: Final = 3_650 * DAY_MS
STORE_TIME_DELAY_MS_MAX: Final = HOUR_MS
"""Delays up to this long are measured in store time, longer ones in wall time."""
WAIT_MS_MAX: Final = DAY_MS
WALL_MS_MAX: Final = 253_402_214_400_000
"""The start of 9999-12-31: a later date could not be shown in every zone."""

# Attempts.
MAX_ATTEMPTS: Final = 5
MAX_LOSSES: Final = 3
BACKOFF_BASE_MS: Final = SECOND_MS
BACKOFF_CAP_MS: Final = 5 * MINUTE_MS
JITTER: Final = 0.2
"""Share of a delay that is added to it at random, never taken from it."""

# Lapses: how many a transaction closes, and when a crowd of them is spread.
LAPSES_PER_BATCH: Final = 32
LAPSE_BATCHES_PER_CLAIM: Final = 32
LAPSES_PER_SECOND: Final = 32
LAPSE_SPREAD_MS_MAX: Final = 10 * SECOND_MS
READY_PAGE: Final = 64
PROMOTED_PER_CLAIM: Final = 1_000

# What a holder believes (TRUST: authority slow, holder fast).
MARGIN_MS_MIN: Final = 250
MARGIN_SHARE: Final = 0.05
MARGIN_SHARE_MAX: Final = 0.25
RENEW_SHARE: Final = 1 / 3
RENEW_SHARE_MAX: Final = 1 / 2
LATE_SHARE: Final = 1 / 2
"""A renewal that comes with less of the ttl left is late, and noted."""
DIVERGENCE_MS_MAX: Final = SECOND_MS

# Durable work.
CHECKPOINTS_KEPT: Final = 10
"""Versions of one name; older ones make room in the transaction that saves the next."""
FILE_BYTES_MIN: Final = 256 << 10
"""From this size on a value is kept as a file beside the store: a database writes it twice, a file once."""
MEMO_BYTES_MAX: Final = 16 << 10
"""Step results up to this size are read in pages when a run begins, larger ones when they are asked for."""
MEMO_ITEMS: Final = 1_000
DECISIONS_PER_PAGE: Final = 100
SIGNALS_KEPT: Final = 64
STEP_ATTEMPTS_MAX: Final = 1_000
EVIDENCE_KEPT: Final = 64
"""Things said too late about one effect, and tries of it whose starters are remembered."""
TRANSACTION_S_MAX: Final = 2.0
TRANSACTION_SHARE: Final = 1 / 6
"""Of the shortest ttl held: a user's own transaction keeps heartbeats waiting."""
EFFECT_TIMEOUT_MS: Final = 5 * MINUTE_MS
"""How long a try may take before it counts as never answered, unless the call says otherwise."""

# Artifacts.
ARTIFACT_BYTES_MAX: Final = 5 << 30
"""What S3 copies in one request, too."""
ARTIFACT_WHOLE_BYTES_MAX: Final = 8 << 20
"""Up to this size an artifact is checked before its first byte is handed out, and held in memory for that."""
ARTIFACT_AGE_MS: Final = DAY_MS
ARTIFACT_AGE_MS_MIN: Final = HOUR_MS
"""Bytes are stored before the commit that names them: younger ones may belong to a commit under way."""
ARTIFACT_REUSE_MS_MAX: Final = 15 * MINUTE_MS
"""Leaves the rest of the least age for that commit, and for clocks that disagree."""
ARTIFACT_LOCK_MS_MAX: Final = 5 * SECOND_MS
ARTIFACTS_PER_BATCH: Final = 500

# Tasks that leave.
PRUNE_AGE_MS_MIN: Final = MINUTE_MS
"""Answers to calls that are repeated are found through what would leave."""
PRUNE_ITEMS_MAX: Final = 100
PRUNE_ROWS: Final = 250
"""Events removed in one transaction, after which it ends; about as many other rows leave with them."""
PRUNE_SPAN: Final = 5_000
"""Tasks that one transaction looks at: it holds the write lock meanwhile."""
RECEIPTS_KEPT_MS: Final = 30 * DAY_MS

# Feeds.
AUDIT_ITEMS_MAX: Final = 1_000
"""Lines of the audit log in one transaction."""
AUDIT_PRUNED_MAX: Final = 2_000
"""And removed in one."""
AUDIT_BATCHES_MAX: Final = 1_000
"""Such transactions of one command; where there are more lines, it says so."""
AUDIT_KEPT_MS: Final = 30 * DAY_MS
"""What is younger leaves the log only by an explicit word."""
REJECTIONS_KEPT: Final = 1_000
FINDINGS_MAX: Final = 1_000
"""What `verify` names before it stops: a broken store has no need of a longer list."""

# Tokens: epoch << 32 | n, below 2**53 so that every JSON reader keeps them exact.
TOKEN_BITS: Final = 32
TOKEN_MAX: Final = (1 << 53) - 1
TOKEN_BLOCK: Final = 1_024
"""Tokens covered by one fsync of the side file."""

# Fences: what a target of the user's own may take.
FENCE_PATIENCE_MS: Final = 5 * SECOND_MS
FENCE_IDLE_MS: Final = 10 * SECOND_MS
FENCE_TRIES: Final = 10
FENCE_ITEMS_MAX: Final = 1_000
FENCE_NAME_CHARS_MAX: Final = 200
FENCE_GIT_MS: Final = MINUTE_MS

# What `doctor` finds too much, too little, or too old.
DOCTOR_WAL_BYTES: Final = 64 << 20
DOCTOR_FREE_BYTES: Final = 256 << 20
DOCTOR_TTL_MS: Final = 2 * SECOND_MS
"""A shorter ttl is lost by a pause of a second, which any busy machine makes."""
DOCTOR_UNCLAIMED_MS: Final = 5 * MINUTE_MS
DOCTOR_EFFECT_MS: Final = HOUR_MS
DOCTOR_QUESTION_MS: Final = DAY_MS
DOCTOR_OVERDUE_MS: Final = MINUTE_MS
DOCTOR_LEASES: Final = 10_000
"""The newest leases, which tell what became of claims."""
DOCTOR_TENANTS: Final = 100
"""Looked at in one go; each is named, and those beyond are told of."""
DOCTOR_RECENT_MS: Final = 7 * DAY_MS
"""Older leases tell nothing about how it is now."""
DOCTOR_QUEUES: Final = 1_000
DOCTOR_READY: Final = 1_000
"""Ready tasks looked at in each queue: those that a claim would look at first."""
DOCTOR_DEAD: Final = 1_000
DOCTOR_DEAD_MS: Final = 7 * DAY_MS
DOCTOR_REPEATS: Final = 10
"""So many leases of one task, each given back at once and with nothing kept, get it nowhere."""
DOCTOR_LOSSES_LEAST: Final = 5
DOCTOR_LOSS_SHARE: Final = 0.1
"""Of the newest leases of a kind: so many lapses are no accident."""

# What `advise` looks at, and when it says nothing.
ADVICE_LEASES: Final = 10_000
"""The newest leases of the store."""
ADVICE_LEASES_LEAST: Final = 20
ADVICE_HOLD_LEAST: Final = 100
"""Finished leases for a 99th percentile that means anything."""
ADVICE_TTL_MS_LEAST: Final = 10 * SECOND_MS
ADVICE_FROZEN: Final = 10
"""Whoever was silent for so many ttls was stopped, and not slow; no ttl is right for that."""
