"""One curve for everything that starts and ends gently."""


def ease(x: float) -> float:
    """0 below 0, 1 above 1, and between them 3x² - 2x³, flat at both ends."""
    x = min(1.0, max(0.0, x))
    return x * x * (3.0 - 2.0 * x)
