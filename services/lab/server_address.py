"""The address of a server to call, as given on a command line."""

from urllib.parse import urlsplit

from pipeline.errors import BadInputError


def checked(url: str) -> str:
    """Without a slash at its end. Raises BadInputError when it is no address of a server."""
    try:
        parts = urlsplit(url)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket without its other half
        fit = False
    if not fit:
        raise BadInputError(f"--url {url}: is not a server's address; write it as http://host:port")
    return url.rstrip("/")
