"""What `longrl check` looks at, one file an area."""
