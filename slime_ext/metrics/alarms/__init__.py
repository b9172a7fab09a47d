"""Rules over the recorded rows of a run, and how their alarms are told."""
