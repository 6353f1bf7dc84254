"""A recorded call, held again in virtual time."""
