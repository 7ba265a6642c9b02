"""The text that Prometheus reads, read by its own parser."""

from prometheus_client.parser import text_string_to_metric_families

from relet.server.exposition import Board, Figure, Kind, exposition

COUNT = Figure("t_count_total", Kind.COUNTER, "Counts.", ("name",))
GAUGE = Figure("t_gauge", Kind.GAUGE, "Stands.")
TOOK = Figure("t_took_seconds", Kind.HISTOGRAM, "Took.", ("name",), (0.1, 1))


def read(*boards):
    """Samples by name and labels; no series twice."""
    samples = [
        ((sample.name, *sorted(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(exposition((COUNT, GAUGE, TOOK), boards).decode())
        for sample in family.samples
    ]
    assert len(dict(samples)) == len(samples)
    return dict(samples)


def test_a_figure_without_a_value_is_named_all_the_same():
    families = {one.name: one for one in text_string_to_metric_families(exposition((COUNT, TOOK), ()).decode())}
    assert [(one.type, one.documentation) for one in families.values()] == [
        ("counter", "Counts."), ("histogram", "Took.")
    ]  # fmt: skip


def test_whatever_a_label_says_comes_back_as_it_was():
    board, names = Board(), ['say "x"', "back\\slash", "two\nlines", "é{}=,", ""]
    for name in names:
        board.add(COUNT, 1, name)
    assert {labels[1][1] for labels in read(board)} == set(names)


def test_a_bucket_holds_all_that_is_no_larger_than_its_end():
    board = Board()
    for value in (0.05, 0.1, 0.11, 1, 3):
        board.observe(TOOK, value, "a")
    found = read(board)
    buckets = {end: found["t_took_seconds_bucket", ("le", end), ("name", "a")] for end in ("0.1", "1", "+Inf")}
    assert buckets == {"0.1": 2, "1": 4, "+Inf": 5}
    assert found["t_took_seconds_count", ("name", "a")] == 5
    assert round(found["t_took_seconds_sum", ("name", "a")], 6) == 4.26


def test_what_stands_on_two_boards_is_one_series_and_both_stay_as_they_are():
    one, other = Board(), Board()
    for board in (one, other):
        board.add(COUNT, 2, "a")
        board.add(GAUGE, 1)
        board.observe(TOOK, 0.5, "a")
    for _ in range(2):
        found = read(one, other)
        assert (found["t_count_total", ("name", "a")], found["t_gauge",]) == (4, 2)
        assert found["t_took_seconds_bucket", ("le", "1"), ("name", "a")] == 2


def test_a_gauge_is_only_ever_raised_to_the_most():
    board = Board()
    for value in (1, 3, 2):
        board.most(GAUGE, value)
    assert read(board)["t_gauge",] == 3
