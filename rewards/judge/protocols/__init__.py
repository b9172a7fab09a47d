"""Judge protocols: how an answer is put to a judge and how its reply is read."""
