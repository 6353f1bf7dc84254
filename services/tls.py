"""Can the server's certificate and key be used?"""

import ssl
from pathlib import Path

REMEDY = "both must be PEM, belong together and need no password"


def fault(certificate: Path, key: Path) -> str | None:
    """Why the two are not a pair that can be read, with their names; None when they are."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without a password function OpenSSL would ask for one at the terminal.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:  # ssl.SSLError is one
        return f"{certificate} and {key} are not a pair that can be read: {error}"
    return None
