"""Mutation testing: small changes of the source, one at a time, each of which some test should notice.

A runner of our own, as neither of the usual ones fits: cosmic-ray starts a pytest for each mutant, which takes longer
than the tests that tell; mutmut runs pytest inside itself without a real stderr, where this suite's faulthandler ends,
and puts its switches into every function, which the tests of what is compiled, forked or started elsewhere don't bear.
Here one process loads what takes long (the libraries), and a fork of it tries each mutant with the tests that come to
the changed line, the quickest first.
"""
