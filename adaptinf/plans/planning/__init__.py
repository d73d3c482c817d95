"""Properties of a plan in advance: sizes, power, time, exact and calibrated critical values, a protocol."""
