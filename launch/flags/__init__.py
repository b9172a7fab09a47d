"""The flags each supported slime accepts, and the check of a command line against them."""
