"""Monitoring of a trial over HTTP: events, looks, alarms and webhooks."""
