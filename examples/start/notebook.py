"""A batch without a second terminal: submit, work until nothing is left, look at what became of it."""

import relet

app = relet.App()


@app.task("page", retry=relet.RetryPolicy(max_attempts=2, base=0))
def page(run: relet.Run, url: str) -> int:
    if "broken" in url:
        raise relet.Permanent(f"there is no {url}", code="HTTP-404")
    if run.attempt == 1 and "slow" in url:
        raise relet.Temporary("timed out", delay=0)
    return len(url)


with relet.connect("sqlite://") as db:  # a private store in memory; name a file to keep it
    for name in ("fast", "slow", "broken"):
        page.submit(db, url=f"{name}.org", id=name)
    print("attempts:", app.run_until_idle(db))
    for task in db.tasks():
        print(task.id, task.state, task.result, task.code)
