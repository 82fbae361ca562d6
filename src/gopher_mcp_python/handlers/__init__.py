"""What asks people: handlers that take an elicitation request and come back with an answer."""
