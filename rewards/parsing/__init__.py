"""Parsing of responses: thinking, tagged blocks, chunk ids. Every parser is linear, none raises."""
