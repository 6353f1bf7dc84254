"""`visavis split …`: what an operator does about a split language model."""
