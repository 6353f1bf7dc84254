"""The observer: what happened in a turn, as numbers. It subscribes; stages do not know it."""
