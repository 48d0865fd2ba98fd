"""The file that `make bench` leaves: tables as they were printed, under the machine that made them."""

import platform

from rich.table import Table

from benchmarks import results


def test_the_file_holds_the_machine_and_every_part_in_order(tmp_path):
    table = Table("work", "ratio", title="times")
    table.add_row("append | in memory", "1.10 (not reached)")

    path = results.written([table, "Peers: none."], "2026-12-07", tmp_path / "RESULTS.md")

    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Results of `make bench`, 2026-12-07"
    assert platform.python_version() in lines[2]
    assert lines[4:] == [
        "**times**",
        "",
        "| work | ratio |",
        "|---|---|",
        "| append \\| in memory | 1.10 (not reached) |",
        "",
        "Peers: none.",
    ]


def test_a_missing_package_is_named_and_not_left_out():
    assert results.installed("no-such-package-anywhere") == "not installed"
    assert results.installed("rich") != "not installed"
