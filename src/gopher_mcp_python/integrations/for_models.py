"""Which failures of a call are an answer for the model, for all frameworks alike."""

from __future__ import annotations

from ..toolset.errors import ElicitationRequiredError, ServerError, UnsendableError

__all__ = ["FOR_THE_MODEL"]

#: The call is over, the connection is good, and a model may do better or say why not: the server's JSON-RPC error; its
#: refusal with -32042 that could not be satisfied, be it that the person said no, that the server's list of pages is of
#: no use, or that it never had enough; and arguments of the model's that can't be sent.
#:
#: All else is raised, for the program: a lost connection or a time limit leaves open whether the tool ran, credentials
#: and handlers are the program's to mend.
FOR_THE_MODEL = (ServerError, ElicitationRequiredError, UnsendableError)
