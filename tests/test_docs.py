"""What the pages say of the project is so: links, names, versions, and what a first run prints."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from commands import call

import driftline as dl

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
API = sorted((DOCS / "api").glob("*.rst"))


def test_the_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in link:
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_every_page_is_in_the_index():
    index = (DOCS / "index.md").read_text()
    listed = set(re.findall(r"^(?:.* <)?([\w/]+)>?$", index, flags=re.MULTILINE))
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert pages <= listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nobody_is_sent_to_an_index_for_it(page):
    assert not re.search(r"pip install\s+['\"]?driftline", page.read_text())


def test_the_version_is_told_everywhere():
    dated = re.search(r"^## (\S+) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    cited = (ROOT / "CITATION.cff").read_text()
    assert dated and dated[1] == dl.__version__
    assert f"\nversion: {dated[1]}\ndate-released: {dated[2]}\n" in cited


def listed():
    """Return all names that the API documents, with their modules."""
    for page in API:
        text = page.read_text()
        for name in re.findall(r"auto(?:class|function|exception):: (\S+)", text):
            yield name
        blocks = re.findall(r"automodule:: (\S+)\n((?:   .*\n)+)", text)
        for module, options in blocks:
            members = re.search(r":members:([^:]*)", options)
            for name in members[1].replace(",", " ").split():
                yield f"{module}.{name}"


def test_names_of_the_api_exist():
    names = [name for name in listed() if ".integrations." not in name]
    assert len(names) == len(set(names)) > 100
    for name in names:
        module, _, last = name.rpartition(".")
        assert hasattr(import_module(module), last), name


def test_names_of_the_package_are_in_the_api():
    documented = {name.rpartition(".")[2] for name in listed()}
    names = [name for name in dl.__all__ if name[0].isupper()] + ["auto", "certify", "load"]
    assert set(names) <= documented


def test_a_first_run_prints_what_the_quickstart_shows(tmp_path, monkeypatch):
    text = (DOCS / "quickstart.md").read_text()
    shown = re.search(r"\$ driftline (run .*)\n((?:.*\n)*?)```", text)
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    done = call(*shown[1].split(), learner=None)
    assert done.exit_code == 0, done.output
    clock = r"[\d.]+ s\b|in \d+ checkpoints?"  # how many are written depends on the time
    timeless = [re.sub(clock, "", told) for told in (shown[2], done.output)]
    lines = [[line for line in told.splitlines() if line] for told in timeless]
    assert lines[0] == lines[1]


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "driftline", "--version"]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0 and dl.__version__ in made.stdout
