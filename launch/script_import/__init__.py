"""From a shell script that starts slime to a recipe, without running a line of it."""
