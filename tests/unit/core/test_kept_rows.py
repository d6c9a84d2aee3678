"""Rows in groups: a group made from other facts is replaced, the others stay."""

from runners.core.files import KeptRows


def test_a_group_of_other_facts_gives_way_and_the_rest_stays(tmp_path):
    path = tmp_path / "rows.jsonl"
    kept = KeptRows(path, ["name"])
    kept.replace({"name": "a", "drafter": "old"}, [{"n": 1}, {"n": 2}])
    kept.replace({"name": "b", "drafter": "old"}, [{"n": 3}])
    again = KeptRows(path, ["name"])
    assert again.has({"name": "a", "drafter": "old"}) and not again.has({"name": "a", "drafter": "new"})
    again.replace({"name": "a", "drafter": "new"}, [{"n": 4}])
    assert [(r["name"], r["drafter"], r["n"]) for r in KeptRows(path, ["name"]).rows] == [
        ("b", "old", 3),
        ("a", "new", 4),
    ]
