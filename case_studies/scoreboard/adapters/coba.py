"""coba: its interval of a mean (standard error) on an arm's rewards."""

from coba.results.errors import StdErrCI


def interval(log, target):
    centre, (below, above) = StdErrCI(0.95).point_interval(log.of(log.arm).tolist())
    return centre - below, centre + above
