"""A framework that has a loop of its own: it claims, keeps, checks and hands in by itself."""

import relet


def read_page(number: int) -> str:
    """A step of the work, and the place where a real one takes minutes."""
    return f"text of page {number}"


def work(db: relet.Client, holder: str, die_after: int | None = None) -> None:
    lease = db.claim("books", holder=holder, ttl="1s", wait="10s")
    if lease is None:
        return  # done already, when this program is run again
    done = lease.load() or {"pages": []}
    print(f"{holder} begins at page {len(done['pages']) + 1}")
    with lease.keep():  # heartbeats, apart from the work, while this block runs
        for number in range(len(done["pages"]) + 1, lease.input["pages"] + 1):
            done["pages"].append(read_page(number))
            lease.check(need=0.1)  # still ours, and for long enough? else LeaseLost
            lease.save(done)  # what the next holder goes on from
            if number == die_after:
                return  # as if the process had been killed: no more heartbeats, and no ending
        lease.complete({"words": sum(len(text.split()) for text in done["pages"])})


with relet.connect("sqlite:///books.db") as db:
    db.submit("books", {"pages": 5}, id="moby-dick")
    work(db, "A", die_after=3)
    work(db, "B")
    task = db.task("moby-dick")
    print(f"done by {task.holder} in attempt {task.attempt}: {task.result}")
