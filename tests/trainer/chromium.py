"""Debian's Chromium without a window: the page as its script left it, and a picture of it.

The browser gets a fresh profile, and no name resolves to an address, so that nothing leaves the machine.
"""

import re
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser")


def missing():
    """Returns why there is no browser, or "" where there is one."""
    return "" if _program() else "no chromium (apt-get install chromium)"


def dump_dom(page, folder, milliseconds=1000):
    """Returns the elements of the page at the path `page`, as text, after so many milliseconds of its own time.

    `folder`: for the profile.
    """
    return _run(page, folder, milliseconds, "--dump-dom")


def screenshot(page, folder, width=1280, height=2000, dark=False):
    """Returns the picture of the page, [height, width, 3] float from 0 to 1."""
    from matplotlib.image import imread

    picture = folder / f"{page.stem}-{width}-{'dark' if dark else 'light'}.png"
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    _run(page, folder, 1000, f"--screenshot={picture}", f"--window-size={width},{height}", "--hide-scrollbars", *scheme)
    return imread(picture)[..., :3]


def with_script(page, script, to):
    """Writes the page with one more script at its end to the path `to`, its content policy left out; returns `to`."""
    text, removed = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    assert removed == 1
    to.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return to


def _run(page, folder, milliseconds, *flags):
    command = [
        _program(),
        "--headless",
        "--no-sandbox",  # root in a container has no other way
        "--disable-gpu",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder / 'profile'}",
        f"--virtual-time-budget={milliseconds}",
        *flags,
        page.absolute().as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout.decode("utf-8")


def _program():
    return next(filter(None, map(shutil.which, NAMES)), None)
