"""A small HTTP server that speaks SGLang's /generate."""
