"""What a plan states in advance: sizes, power, time, exact and calibrated critical values, a protocol."""
