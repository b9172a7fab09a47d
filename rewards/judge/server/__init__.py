"""A reward as an HTTP service, so that several jobs share one judge and one verdict cache."""
