"""Makes links of the pages that leave docs/, such as ../recipes/README.md, lead to the repository."""

from __future__ import annotations

import posixpath
import re
from typing import Any

REPOSITORY = "https://github.com/emoglot/emoglot/blob/main"
LINK = re.compile(r"\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replace the links to files outside of docs/."""

    def replace(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), match[1]))
        return match[0] if path.startswith("docs/") else f"]({REPOSITORY}/{path})"

    return LINK.sub(replace, markdown)
