"""Was every promise kept: judged from what clients were told, and from the rows that are there in the end."""

from collections import Counter, defaultdict

import psycopg

LEASES = "SELECT l.token, t.id, l.ended FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq"
TASKS = "SELECT id, state, token, attempt, losses FROM relet.tasks"
CHECKPOINTS = "SELECT t.id, c.token FROM relet.checkpoints c JOIN relet.tasks t ON t.seq = c.task_seq"


def rows(url, query):
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def tokens_only_grow(story):
    """No token was given out twice, by whichever copy of the store, and later grants have larger ones."""
    claims = story.of("claimed")
    twice = [token for token, times in Counter(line.token for line in claims).items() if times > 1]
    assert not twice, f"given out twice: {twice}"
    # A grant that was asked for after another had been answered is the later one, whatever the task.
    answered = sorted(claims, key=lambda line: line.answered)
    largest, at = 0, 0
    for line in sorted(claims, key=lambda line: line.sent):
        while answered[at].answered < line.sent:
            largest, at = max(largest, answered[at].token), at + 1
        assert line.token > largest, f"{line} after {largest}"
    of_task = defaultdict(list)
    for line in sorted(claims, key=lambda line: line.token):
        of_task[line.task].append(line.attempt)
    for task, attempts in of_task.items():
        assert attempts == sorted(attempts), f"{task}: its attempts went back: {attempts}"


def nothing_is_lost(story, url):
    """What was acknowledged is there: submits, grants, checkpoints, completions; and each task was done once."""
    tasks = {task: rest for task, *rest in rows(url, TASKS)}
    leases = {token: (task, ended) for token, task, ended in rows(url, LEASES)}
    missing = set(story.submitted) - tasks.keys()
    assert not missing, f"submitted, and gone: {sorted(missing)[:5]}"
    undone = {task: rest for task, rest in tasks.items() if rest[0] != "done"}
    assert not undone, f"not done: {dict(list(undone.items())[:5])}"
    for line in story.of("claimed"):
        assert leases.get(line.token, [None])[0] == line.task, f"granted, and gone: {line}"
    for line in story.of("completed"):
        assert leases[line.token] == (line.task, "completed"), f"completed, and then not: {line}"
        assert tasks[line.task][1] == line.token
    saved = set(rows(url, CHECKPOINTS))
    assert {(line.task, line.token) for line in story.of("saved")} <= saved


def each_is_done_once(story, url):
    """At most one completion of a task was ever accepted."""
    told = Counter(line.task for line in story.of("completed"))
    assert max(told.values()) == 1, [task for task, times in told.items() if times > 1]
    ended = Counter(task for _, task, ended in rows(url, LEASES) if ended == "completed")
    assert max(ended.values()) == 1


def no_token_means_two_things(story, url):
    """A token that a worker was given names the same task in the store, if the store still knows it at all."""
    known = {token: task for token, task, _ in rows(url, LEASES)}
    for line in story.of("claimed"):
        assert known.get(line.token, line.task) == line.task, line


def judge(story, url, db):
    """All of it, where nothing may be lost."""
    tokens_only_grow(story)
    nothing_is_lost(story, url)
    each_is_done_once(story, url)
    no_token_means_two_things(story, url)
    assert story.held == "completed", "its holder lived, and renewed it"
    assert (found := db.backend.verify().findings) == [], found
