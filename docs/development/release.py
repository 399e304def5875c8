"""Prepare a release: check, build, try, attest, tag. It stops before anything leaves this machine.

``python docs/development/release.py --key issuer`` writes ``dist/`` and a tag, and prints what a person types next.
``--check`` only checks.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from reticent.io import strict
from reticent.signing.envelope import seal
from reticent.signing.keys import load_private_key

ROOT = Path(__file__).parents[2]
KIND = "application/vnd.in-toto+json"
_USUAL = {"Repository", "Documentation", "Changelog", "Issues"}


def problems(root: Path) -> Iterator[str]:
    """Why ``root`` cannot be released as it is, one line each."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    version = project["version"]
    for name, line in (("src/reticent/__init__.py", '__version__ = "{}"'), ("CITATION.cff", "version: {}")):
        if line.format(version) not in (root / name).read_text().splitlines():
            yield f"{name}: the version must be {version}, as in pyproject.toml"
    dated = re.compile(rf"^## {re.escape(version)}, (\d{{4}}-\d\d-\d\d)$", re.MULTILINE)
    heading = dated.search((root / "CHANGELOG.md").read_text())
    if not heading:
        yield f"CHANGELOG.md: needs a heading '## {version}, YYYY-MM-DD'"
    elif f"date-released: {heading[1]}" not in (root / "CITATION.cff").read_text().splitlines():
        yield f"CITATION.cff: needs 'date-released: {heading[1]}', as in CHANGELOG.md"
    missing = sorted(_USUAL - set(project.get("urls", {})))
    if missing:
        yield f"pyproject.toml: [project.urls] lacks {', '.join(missing)}: say where the project will be"
    if "not on PyPI yet" in (root / "README.md").read_text():
        yield "README.md: still says that reticent is not on PyPI; make `pip install reticent` the install command"


def ran(*words: str | Path, **environment: str) -> str:
    """What a command printed; ends with its error where it fails."""
    done = subprocess.run(
        [str(word) for word in words], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{words[0]} {words[1]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout.strip()


def absolute(readme: str, repository: str, version: str) -> str:
    """The README for the package index, which follows no relative link and shows no relative picture."""
    there = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\1{repository}/raw/v{version}/", readme)
    return re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\1{repository}/blob/v{version}/", there)


def built(version: str, repository: str, dist: Path) -> list[Path]:
    """The wheel, the sdist and the archive to cite, with the time of the commit: the same bits from the same commit."""
    dist.mkdir(exist_ok=True)
    archive = dist / f"reticent-{version}-archive.tar.gz"
    ran("git", "archive", f"--prefix=reticent-{version}/", "-o", archive, "HEAD")
    with TemporaryDirectory() as folder:
        shutil.unpack_archive(archive, folder, filter="data")
        source = Path(folder) / f"reticent-{version}"
        readme = source / "README.md"
        readme.write_text(absolute(readme.read_text(), repository, version))
        venv.create(Path(folder) / "env", with_pip=True)
        python = Path(folder) / "env" / "bin" / "python"
        ran(python, "-m", "pip", "install", "--quiet", "build", "twine")
        time = ran("git", "log", "-1", "--format=%ct")
        ran(python, "-m", "build", "--outdir", dist, source, SOURCE_DATE_EPOCH=time)
        packages = [*sorted(dist.glob(f"reticent-{version}*.whl")), dist / f"reticent-{version}.tar.gz"]
        ran(python, "-m", "twine", "check", "--strict", *packages)
    return [*packages, archive]


def tried(wheel: Path) -> None:
    """Install the wheel into an empty environment, and ask it for risk, noise, a certificate and its verification."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        binary = Path(folder) / "bin"
        ran(binary / "python", "-m", "pip", "install", "--quiet", wheel)
        ran(sys.executable, "-m", "tests.docs.test_release", binary / "reticent", folder)


def attested(files: list[Path], version: str, key: Path) -> Path:
    """A signed statement of what was built from which commit (in-toto, in a DSSE envelope)."""
    subjects = [{"name": f.name, "digest": {"sha256": hashlib.sha256(f.read_bytes()).hexdigest()}} for f in files]
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "docs/development/release.py",
                "externalParameters": {"version": version},
                "resolvedDependencies": [{"digest": {"gitCommit": ran("git", "rev-parse", "HEAD")}}],
            },
            "runDetails": {"builder": {"id": f"python {sys.version.split()[0]} on {sys.platform}"}},
        },
    }
    envelope = seal(strict.canonical(statement), KIND, [load_private_key(key)])
    path = files[0].parent / f"reticent-{version}.intoto.json"
    path.write_text(envelope.to_json())
    return path


def main() -> None:
    """Stop at the first thing that is not as it must be."""
    asked = argparse.ArgumentParser(description="Prepare a release; upload nothing.")
    asked.add_argument("--key", type=Path, help="private key of `reticent keygen` that signs the statement")
    asked.add_argument("--check", action="store_true", help="only say what is missing")
    given = asked.parse_args()
    found = list(problems(ROOT))
    if ran("git", "status", "--porcelain"):
        found.append("git: there are changes that no commit has")
    if found or given.check:
        raise SystemExit("\n".join(found) or 0)
    if given.key is None:
        raise SystemExit("--key is missing: the statement must be signed")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = project["version"]
    files = built(version, project["urls"]["Repository"].rstrip("/"), ROOT / "dist")
    tried(files[0])
    statement = attested(files, version, given.key)
    ran("git", "tag", "--annotate", f"v{version}", "--message", f"reticent {version}")
    print("\n".join(["Nothing was uploaded. Look at", *(f"  {path}" for path in [*files, statement])]))
    print(f"and then type\n  git push origin v{version}\n  twine upload {' '.join(str(f) for f in files[:-1])}")


if __name__ == "__main__":
    main()
