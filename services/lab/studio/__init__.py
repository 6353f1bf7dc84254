"""Makes what callers say: lines spoken by machines or people, with where their words and pauses are."""
