"""What the wheels of the pure Python distributions hold."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.repository import DISTRIBUTIONS, ROOT, source_of

PURE = [distribution for distribution in DISTRIBUTIONS if distribution != "chunkwright-rust"]


@pytest.mark.parametrize("distribution", PURE)
def test_a_wheel_holds_the_package_its_types_and_the_licence(distribution: str, tmp_path: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(DISTRIBUTIONS[distribution])], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        licences = [archive.read(name) for name in names if name.endswith("/LICENSE")]
    package = source_of(distribution)
    modules = {str(path.relative_to(package.parent)) for path in package.rglob("*.py")}
    assert modules | {f"{package.name}/py.typed"} <= set(names)
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {package.name}
    assert licences == [(ROOT / "LICENSE").read_bytes()]
