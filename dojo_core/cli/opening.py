"""Open a page in the browser once its server answers: ``python -m dojo_core.cli.opening URL``."""

from __future__ import annotations

import sys
import time
import urllib.request
import webbrowser

SECONDS = 60.0  # to wait for the server


def main(url: str) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=2):
                webbrowser.open(url)
                return
        except OSError:
            time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1])
