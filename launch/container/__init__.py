"""Container definitions on slime's image, and the check that ends their build."""
