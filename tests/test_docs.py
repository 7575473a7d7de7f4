"""The documentation: its commands print what the pages say, its links lead somewhere, its pages are in the site."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.main import get_command

from emoglot.cli import app
from tests.docs_blocks import ROOT, RUNNABLE, Session, agrees, find_blocks, pages

DOCS = ROOT / "docs"
SITE = "https://emoglot.github.io/emoglot/"
REPOSITORY = "https://github.com/emoglot/emoglot"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^[ ]*```.*?^[ ]*```$", re.MULTILINE | re.DOTALL)
ALL_PAGES = sorted(DOCS.rglob("*.md"))


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MkDocs make them."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) for title in titles}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_blocks_print_what_the_page_says(page, tmp_path):
    blocks = [block for block in find_blocks(page) if block.reason is None]
    if not blocks:
        pytest.skip("every block of this page says why it is not run")
    if shutil.which("bash") is None:
        pytest.skip("the commands of the documentation need bash")
    pytest.importorskip("polars", reason="the commands of the documentation need emoglot[report]")
    session = Session(tmp_path / "session")
    for block in blocks:
        assert session.run(block) == block.body, f"{block.place}: `make docs-outputs` writes the outputs anew"


def test_every_block_is_run_or_says_why_not():
    for page in pages():
        text = page.read_text(encoding="utf-8")
        fences = re.findall(rf"^[ ]*```(?:{'|'.join(RUNNABLE)})\b", text, re.MULTILINE)
        assert len(fences) == len(list(find_blocks(page))), page
        untagged = re.findall(r"^```(\S*)$", text, re.MULTILINE)[::2]
        assert "" not in untagged, f"{page}: every block names its language"


def test_every_command_and_option_in_the_docs_exists():
    root = get_command(app)
    for page in [ROOT / "README.md", *ALL_PAGES]:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        in_blocks = r"(?:^(?:\$ )?|[|;&] *)emoglot ([a-z][^\n|#]*)"
        lines = [line for block in FENCE.findall(text) for line in re.findall(in_blocks, block, re.MULTILINE)]
        for line in [*lines, *re.findall(r"`emoglot ([a-z][^`]*)`", FENCE.sub("", text))]:
            command, words = root, line.split()
            while hasattr(command, "commands") and words and words[0].isalpha() and words[0].islower():
                command = command.commands[words.pop(0)]
            known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
            used = {word.partition("=")[0] for word in words if re.fullmatch(r"--[a-z-]+(=.*)?", word)}
            assert used <= known | {"--help"}, (name_of(page), line)


def test_every_command_is_in_the_reference():
    page = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `emoglot (\w+)`", page, re.MULTILINE)
    assert sorted(listed) == sorted(get_command(app).commands)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("joy 0.75", "joy 0.74", True),
        ("joy 0.75", "fear 0.75", False),
        ("a\n…\nz", "a\nb\nc\nz", True),
        ("", "x", False),
    ],
)
def test_outputs_are_compared_without_their_decimals(expected, printed, same):
    assert agrees(expected, printed) is same


@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands of the documentation need bash")
def test_messages_come_after_results_and_progress_is_left_out(tmp_path):
    session = Session(tmp_path / "session")
    assert session.run_command("echo 3 of 9: slow >&2; echo note >&2; echo result") == "result\nnote\n"
    with pytest.raises(AssertionError, match="ended with 3"):
        session.run_command("exit 3")


@pytest.mark.parametrize("page", [*ALL_PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_links_lead_to_files_and_headings(page):
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), (page, link)
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), (page, link)


def test_links_of_the_readme_are_absolute_and_lead_to_files():
    for link in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        assert link.startswith("https://"), link
        if link.startswith(SITE):
            name = link.removeprefix(SITE).strip("/")
            assert (DOCS / f"{name or 'index'}.md").exists(), link
        for base in (f"{REPOSITORY}/blob/main/", "https://raw.githubusercontent.com/emoglot/emoglot/main/"):
            if link.startswith(base):
                assert (ROOT / link.removeprefix(base)).exists(), link


def test_every_page_is_in_the_navigation():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"([\w/-]+\.md)$", settings[settings.index("\nnav:") :], re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in ALL_PAGES)


def test_the_site_asks_no_other_host():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in settings
    assert "extra_javascript" not in settings
    assert not re.search(r"^repo_url", settings, re.MULTILINE)  # its theme would ask GitHub for stars on every page
