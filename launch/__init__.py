"""Launch: what turns a recipe into a running job."""
