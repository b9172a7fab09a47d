"""What runs inside a job, on its nodes; called from the rendered script."""
