"""How far a judge can be trusted: agreement with labels, steadiness, resistance to attacks."""
