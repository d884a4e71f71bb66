"""The key file: who has it takes part, nobody else does.

dask sends pickled code, so whoever may speak to a scheduler may run anything on all its workers. Hence all
that the Dojo starts speaks TLS, and each end shows the certificate of one file, the same on all of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dojo_core.files import naming
from dojo_core.measure.places import data_directory

if TYPE_CHECKING:
    from distributed.security import Security


class NoCredentials(ValueError):
    """The key file is missing or no key file; ``str()`` is a sentence for a person."""


def default_key() -> Path:
    """Where the key file of this user lies."""
    return data_directory() / "cluster.pem"


def made(path: Path) -> Path:
    """The key file, made where there is none: for its owner's eyes only, good for a year."""
    from distributed.security import Security

    if not path.exists():
        fresh = Security.temporary()
        content = f"{fresh.tls_client_key}{fresh.tls_client_cert}"
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with naming(temporary), os.fdopen(descriptor, "w") as file:
            file.write(content)
        os.replace(temporary, path)
    return path


def security(path: Path) -> Security:
    """What dask needs to take part with a key file. Raises NoCredentials."""
    from distributed.security import Security

    try:
        if path.stat().st_mode & 0o077:
            raise NoCredentials(f"Others can read {path}, which is a key: chmod 600 {path}")
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NoCredentials(
            f"There is no key file {path}: copy it from the machine where dojo scheduler made it."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise NoCredentials(f"The key file {path} cannot be read: {error}.") from None
    begin = content.find("-----BEGIN CERTIFICATE-----")
    if begin <= 0 or "PRIVATE KEY-----" not in content[:begin]:
        raise NoCredentials(f"{path} is no key file: dojo scheduler makes one.")
    key, certificate = content[:begin], content[begin:]
    return Security(
        require_encryption=True,
        tls_ca_file=certificate,
        **{f"tls_{role}_key": key for role in ("client", "scheduler", "worker")},
        **{f"tls_{role}_cert": certificate for role in ("client", "scheduler", "worker")},
    )
