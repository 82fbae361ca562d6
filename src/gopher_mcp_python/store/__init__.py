"""Questions kept until somebody answers them elsewhere: the elicitation store (docs/store.md)."""
