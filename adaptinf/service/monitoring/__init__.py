"""What those who watch a trial see of it over HTTP: events, looks, alarms and webhooks."""
