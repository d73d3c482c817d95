"""What a plan states beforehand: sizes, power, time, exact and calibrated critical values, a protocol."""
