"""Tools: data construction, evaluation, export and reports."""
