"""A frame whose columns are read in the order of its times: zones, periods and batches."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from adaptinf.claims.logs import readings as claims
from adaptinf.log.validation import column_checks as checks
from adaptinf.log.validation.column_roles import Roles
from adaptinf.log.validation.frame_columns import Column, Findings, read_column
from adaptinf.log.validation.row_order import date_column, date_formats, has_zone, instants, row_order
from adaptinf.log.validation.times.time_periods import PERIODS, UTC, clock_of, cut_to_periods, zone_problem
from adaptinf.texts import unlisted
from adaptinf.typing import IntArray


class TimedRows:
    """The columns of a frame, including those derived from others, in the order of the rows' times."""

    def __init__(self, frame: Any, roles: Roles, found: Findings) -> None:
        self.frame, self.roles, self.found = frame, roles, found
        self.formats: dict[str, str | None] = {}
        self.made: dict[Hashable, Column] = {}
        self.every: str | None = None
        self.zone: str | None = None
        self.instants: dict[Hashable, Column | None] = {}

    def put_in_order(self, sort: object, date_format: str | None) -> None:
        """Sort the rows by round, otherwise by batch, if the user requests it."""
        roles: tuple[str, ...] = ("round", "batch")
        names = {role: self.roles.single[role] for role in roles if role in self.roles.single}
        columns = {role: column for role, name in names.items() if (column := self.read(name)) is not None}
        self.formats = date_formats(columns, date_format, self.found)
        if self.zone is not None:
            for role, name in names.items():
                self.put_in_zone(role, name)
            columns = {
                role: column for role, name in names.items() if (column := self.read(name)) is not None
            }
        self.found.order = row_order(sort, columns, names, self.formats, self.found)

    def check_periods(self, every: object, timezone: object) -> None:
        """Check the period to which times are truncated, and the time zone in which they are read."""
        if every is not None and every not in PERIODS:
            self.found.add("bad-every", unlisted("'every'", PERIODS, every))
        elif every is not None and not {"round", "batch"} & set(self.roles.single):
            told = "'every' requires batch= or round=, the column of times to divide into periods"
            self.found.add("bad-every", told)
        else:
            self.every = None if every is None else str(every)
        if timezone is not None and (problem := zone_problem(timezone)):
            self.found.add("bad-timezone", problem)
        elif timezone is not None and not {"round", "batch"} & set(self.roles.single):
            self.found.add("bad-timezone", "'timezone' requires round= or batch=, a column of times")
        else:
            self.zone = None if timezone is None else str(timezone)

    def put_in_zone(self, role: str, name: Hashable) -> None:
        """Read the times of a role on the zone's clock, as instants."""
        column, what = self.read(name), f"{role} column {name!r}"
        if column is None or self.zone is None:
            return
        naive = not has_zone(column, self.formats.get(role))
        read = instants(column, what, role, self.formats.get(role), self.zone, self.found)
        self.instants[name] = read
        if naive and read is not None and read.values.dtype.kind == "M":
            self.found.tell("dates", claims.IN_ZONE(column=what, zone=self.zone))

    def batches(self) -> IntArray | None:
        """Batches of the rows, shape (T,): from a column, or from periods of its times."""
        if self.every is None:
            read: IntArray | None = self.single("batch", checks.check_batches, self.formats.get("batch"))
            return read
        role = "batch" if "batch" in self.roles.single else "round"
        name = self.roles.single[role]
        column, what = self.read(name), f"{role} column {name!r}"
        if column is None:
            return None
        zoned, kind, problems = has_zone(column, self.formats.get(role)), column.values.dtype.kind, Findings()
        times: Column | None = column
        if kind == "O" or (self.formats.get(role) is not None and kind in "iu"):
            # Problems with a round column are reported when rounds are read, so here they are discarded.
            told = self.found if role == "batch" else problems
            times = date_column(column, what, role, self.formats.get(role), told)
        if times is None:
            return None
        if times.values.dtype.kind != "M":
            self.found.add(
                "bad-every", f"'every' divides dates and times, but {what} is of type {column.dtype}"
            )
            return None
        starts, _ = cut_to_periods(clock_of(times.values, self.zone if zoned else None), self.every)
        found = self.found if role == "batch" else problems
        cut = Column(starts, times.missing, "datetime64[us, UTC]" if zoned else "datetime64[us]")
        codes = checks.check_batches(cut, name, None, found)
        if codes is not None:
            clock = f"in the time zone {self.zone or UTC}" if zoned else "as written"
            count = int(codes.max(initial=-1)) + 1
            values = {"every": self.every, "column": what, "clock": clock, "batches": count}
            self.found.tell("batches", claims.PERIODS(**values))
        return codes

    def read(self, name: Hashable) -> Column | None:
        """Column with this name; None if it is repeated or has no rows."""
        if name in self.made:
            return self.made[name]
        position = self.roles.positions.get(name)
        if position is None or not len(self.frame):
            return None
        order = self.found.order
        column = self.instants[name] if name in self.instants else read_column(self.frame, position)
        return column if column is None or order is None else column.at(order)

    def single(self, role: str, check: Callable[..., Any], *options: object) -> Any:
        """Result of a check on a role's column, or None if there is no such column."""
        if role not in self.roles.single:
            return None
        name = self.roles.single[role]
        column = self.read(name)
        return None if column is None else check(column, name, *options, self.found)
