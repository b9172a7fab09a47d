"""Published data sets, `hub:OWNER/NAME`: fetched and converted once, then read as a file."""
