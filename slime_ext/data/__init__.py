"""Data: the row schema, a streaming indexed reader, importers and prompt rendering."""
