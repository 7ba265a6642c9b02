"""The faults that others met, one row each, and what of them is not built yet or left out on purpose."""

from __future__ import annotations

from typing import Final, NamedTuple

TITLES: Final[dict[str, str]] = {
    "CR": "Claims",
    "EC": "Expiry and clocks",
    "HB": "Heartbeats",
    "LL": "After a loss",
    "ZC": "Endings",
    "TS": "Takeovers by the hundred",
    "RD": "Retries and dead letters",
    "CK": "Checkpoints and artifacts",
    "ID": "Effects",
    "AP": "Approvals",
    "CS": "Cancel and shutdown",
    "SQ": "SQLite",
    "PG": "PostgreSQL",
    "HT": "Service and MCP",
    "PL": "Payloads",
    "SC": "Scale",
    "OB": "Looking at it",
}


class Case(NamedTuple):
    """A fault: its id, and what must hold so that it does not happen."""

    id: str
    text: str


CASES: Final = (
    Case("CR-01", "Of two processes that claim one ready task at the same instant, one gets it."),
    Case("CR-03", "A sweep at the very millisecond of a claim leaves the new lease alone."),
    Case("CR-05", "A worker that dies between the claim and its first line leaves a task that comes back."),
    Case("CR-06", "A lease is renewed and given back by its own handle alone, whatever is known of another."),
    Case("CR-07", "Who loses a lease and gets it again has a new token; the old one stays refused."),
    Case("CR-09", "A worker that drains claims nothing, also when its successor has the same name."),
    Case("EC-01", "A process whose wall clock is wrong takes over nobody who is alive."),
    Case("EC-03", "A step of the wall clock holds up no heartbeat, and ends no lease."),
    Case("EC-04", "A lease is judged by its own ttl, not by that of whoever asks; once expired it is free at once."),
    Case("EC-06", "The holder counts from before it asked: a slow answer leaves it less time, never more."),
    Case("EC-08", "Renewals come well before the end; an interval of more than half a ttl is refused."),
    Case("EC-09", "A renewal sets the end and adds nothing; `max_hold` cuts the last one short and says so."),
    Case("EC-10", "Who sleeps past its ttl and wakes is refused every write, and goes on with other tasks."),
    Case("EC-11", "A suspended machine ends the holder's trust: the clock that counts suspend decides."),
    Case("EC-12", "Time zones and summer time move nothing; a time without a zone is refused."),
    Case("HB-01", "Work that keeps the interpreter's lock does not lose its lease with a heartbeat process."),
    Case("HB-02", "A blocked event loop and a busy handler keep their leases."),
    Case("HB-04", "A forked child keeps its own leases, or is told plainly that it cannot."),
    Case("HB-05", "No lock that some thread held at a fork keeps the child waiting."),
    Case("HB-06", "Nothing ages in a buffer: a worker claims when it has a slot."),
    Case("HB-09", "A heartbeat process ends with the process that it beats for."),
    Case("HB-10", "Long work with good heartbeats is one attempt, whoever sweeps meanwhile."),
    Case("LL-01", "A loss is told once, within one heartbeat, whatever errors came before it."),
    Case("LL-02", "Cut off from the store, the work stops at its own deadline, before the store gives it away."),
    Case("LL-04", "A late write that is on its way already is refused where it lands."),
    Case("LL-07", "After a loss an attempt sends one release at most, and nothing else."),
    Case("ZC-01", "A result at the instant of expiry is taken or refused, and never both."),
    Case("ZC-03", "Done stays done under every sweep, and nothing of it is left open."),
    Case("ZC-04", "A heartbeat that crosses with the end of its own lease is no loss."),
    Case("ZC-06", "A late result is refused at the instant of expiry, and kept for the next holder to read."),
    Case("TS-01", "Losing one lease ends that attempt alone: no crash, no chain of takeovers."),
    Case("TS-03", "Hundreds of leases that end in one second come back spread, and are not given up."),
    Case("TS-05", "Jitter comes after the delay that was asked for, and spreads; no delay stays none."),
    Case("RD-01", "A task that kills its workers becomes a dead letter, and holds up no other."),
    Case("RD-03", "One limit counts every bad end of an attempt, and each end leaves a reason of its own."),
    Case("RD-04", "The backoff of any attempt is finite and reaches its cap."),
    Case("RD-06", "Rows that a sweep has to pass over hide none that it must take back."),
    Case("RD-08", "A short lease of a dead process comes back after its own ttl, not the longest one's."),
    Case("RD-09", "A month of hourly retries loses neither the count, nor the date, nor a receipt."),
    Case("RD-10", "A sweeper that is killed in the middle leaves nothing that stops the next one."),
    Case("RD-12", "An error in the middle of a sweep leaves nothing behind that the next sweep does not see."),
    Case("RD-13", "A busy store costs no attempt, and makes one result."),
    Case("CK-01", "The last progress is what stands, however the attempt ends."),
    Case("CK-02", "A save and an artifact are whole or not there, whenever the process is killed."),
    Case("CK-04", "Holders that die before their first save leave the last one in place."),
    Case("CK-06", "The holder's own renewals never get its save refused; a takeover does at once."),
    Case("CK-08", "Tasks with equal input share nothing."),
    Case("CK-09", "What an older program, another task or a late holder offers does not replace what is kept."),
    Case("ID-01", "A try whose holder died is listed as unknown, and one word of a person settles it."),
    Case("ID-04", "Of twenty that begin one effect, one calls; the others are told that it is under way."),
    Case("ID-06", "Receipts move forward only; a late word changes no outcome."),
    Case("ID-07", "The key of an effect holds over attempts, and is another thing than the id of a task."),
    Case("ID-08", "Killed between the call and its receipt: not repeated by itself, settled by a person, then on."),
    Case("ID-10", "An exception of a call is no proof that it did not happen, unless the caller says so."),
    Case("AP-01", "Waiting for an answer with a short patience changes nothing."),
    Case("AP-02", "After its time a question is closed once, and a late answer is refused."),
    Case("AP-05", "An approval is for one question of one task, and is used once."),
    Case("AP-07", "A question outlives who asked it; while it is open it costs no lease and no worker."),
    Case("AP-08", "After the answer nothing before it is done again, and nothing is asked twice."),
    Case("AP-09", "The first answer stands, also used and killed right behind; the others are told of it."),
    Case("CS-01", "A task that is cancelled as it is claimed never started, or was told to stop."),
    Case("CS-02", "Cancel, timeout and shutdown leave three different traces."),
    Case("CS-03", "Cancel, loss, timeout and shutdown end the whole group of processes."),
    Case("CS-05", "A cancel of nobody is refused and kept nowhere; one of a finished task says so."),
    Case("CS-06", "A rollout saves, gives back and costs no attempt; a second signal ends at once."),
    Case("SQ-01", "No caller sees a busy database; everything that writes begins as a writer."),
    Case("SQ-03", "Readers that stay do not let the log of the database grow."),
    Case("SQ-04", "A store on a network file system is refused, with the reason."),
    Case("SQ-06", "An SQLite with a known fault is not used; what else is linked is told."),
    Case("SQ-08", "A backup is put back only where nobody has the store open, under tokens above all before."),
    Case("SQ-09", "One client serves many threads; no thread ends another's transaction."),
    Case("SQ-10", "A full disk is an error with a name; with room again everything goes on."),
    Case("PG-01", "Nothing depends on one session of the database."),
    Case("PG-03", "A dead notification line is noticed, and polled around."),
    Case("PG-05", "The pool of connections survives cancelled waits and idle days."),
    Case("PG-06", "Renewals in bulk, endings and a sweep never wait for each other in a circle."),
    Case("PG-08", "After an older copy is put back, tokens go on above all that were given out."),
    Case("HT-01", "A claim whose answer was lost is asked again and is the same claim."),
    Case("HT-03", "An error of a renewal is no loss; only the deadline or the store's word is."),
    Case("HT-04", "One slow call holds up no other; what is printed cannot spoil the protocol."),
    Case("PL-01", "Text that a database cannot keep is cleaned or refused by its field; no task hangs on it."),
    Case("PL-02", "NaN and infinity are refused by their path, and the lease stays."),
    Case("PL-05", "A result that cannot be kept fails the task with a reason; the worker lives."),
    Case("SC-01", "Counting and listing do not read what is finished."),
    Case("OB-01", "A task tells who took it over, from whom, by which tokens, and why."),
    Case("OB-02", "A worker that cannot start does not look alive."),
    Case("OB-04", "A second start of a held task is refused loudly; once the lease has expired it goes on."),
    Case("OB-05", "Live leases, lapsed ones, waits and unknown effects are counted apart."),
)

NOT_BUILT: Final[dict[str, str]] = {
    "SQ-03": "the service, MCP",
    "HT-04": "MCP",
}
"""What a case waits for. It counts until the first test names the case."""

APART: Final[dict[str, str]] = {
    "AP-07": "by MCP: not built yet",
    "AP-09": "notifications: not built yet",
    "HT-01": "over HTTP: not built yet",
    "HT-03": "over HTTP: not built yet",
    "ID-04": "through two services: not built yet",
}
"""What a case with tests still leaves open."""
