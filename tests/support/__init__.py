"""What the tests share: real peers, a scripted model, guards against leaks of memory and of secrets."""
