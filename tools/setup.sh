#!/usr/bin/env bash
# Makes .venv and installs into it what a make target needs: `tools/setup.sh GOAL` for demo, test or bench.
#
# In order: find a Python >= 3.12, make the virtual environment, install pinned packages and our own
# distributions (editable), compile the Rust member in release mode. Each stage leaves a stamp that holds
# a hash of its inputs and is skipped while the hash stays the same. `demo` goes on without Rust; the others do not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

goal=${1:-test}
venv=.venv
python=$venv/bin/python
stamps=$venv/stamps
uv_pin=uv==0.13.9

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

is_suitable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

# Names first; a pyenv shim answers to a name without having the version, so each candidate is run.
find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3.14 python3.13 python3.12 python3; do
        if is_suitable "$candidate"; then command -v "$candidate"; return; fi
    done
    for candidate in $(printf '%s\n' "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python | sort -rV); do
        if is_suitable "$candidate"; then printf '%s\n' "$candidate"; return; fi
    done
    return 1
}

# fresh NAME HASH: whether the stage was done with these inputs.
fresh() { [[ -f $stamps/$1 && $(<"$stamps/$1") == "$2" ]]; }
stamp() { mkdir -p "$stamps"; printf '%s\n' "$2" >"$stamps/$1"; }
hash_of() { cat "$@" | sha256sum | cut -d' ' -f1; }

make_venv() {
    is_suitable "$python" && return
    local found
    found=$(find_python) || die "no Python 3.12 or later (with venv) on PATH or under pyenv;" \
        "install one, for instance with 'pyenv install 3.13', or set PYTHON=/its/path"
    say "making $venv with $("$found" --version)"
    rm -rf "$venv"
    "$found" -m venv "$venv"
}

# uv is much the faster installer; where it is not to be had, or cannot reach what pip is set up to reach, pip installs.
install() {
    [[ -x $venv/bin/uv ]] || "$python" -m pip install --quiet "$uv_pin" || true
    if [[ -x $venv/bin/uv ]] && "$venv/bin/uv" pip install --quiet --python "$python" "$@"; then return; fi
    say "uv could not install; trying pip"
    "$python" -m pip install --quiet --upgrade 'pip>=25.1'
    "$python" -m pip install --quiet "$@"
}

install_python_packages() {
    local inputs
    inputs=$(hash_of pyproject.toml tools/setup.sh core/pyproject.toml adapters/*/pyproject.toml)
    fresh "$goal" "$inputs" && return
    say "installing packages for '$goal'"
    install --group "$goal" -e core -e adapters/numcodecs -e adapters/store_bridge -e adapters/zarr_python
    install --no-deps --group volume
    stamp "$goal" "$inputs"
}

at_least() { [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

# Prints why the Rust member cannot be built; prints nothing when it can.
missing_for_rust() {
    local tool need have
    for tool in cargo rustc; do
        command -v "$tool" >/dev/null || { echo "$tool is missing (install Rust with rustup)"; return; }
    done
    command -v cc >/dev/null || { echo "a C compiler 'cc' is missing (for instance package build-essential)"; return; }
    need=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    have=$(rustc --version | cut -d' ' -f2)
    at_least "$need" "$have" || echo "rustc $have is too old, $need or later is needed (rustup update)"
}

build_rust() {
    local inputs
    inputs=$({ cat Cargo.toml Cargo.lock adapters/rust/Cargo.toml adapters/rust/pyproject.toml
        find adapters/rust/src -type f | LC_ALL=C sort | xargs cat; rustc --version; } | sha256sum | cut -d' ' -f1)
    fresh rust "$inputs" && compgen -G 'adapters/rust/python/chunkwright_rust/_native*.so' >/dev/null && return
    say "compiling the Rust member"
    install --group rust
    CARGO_TARGET_DIR=$PWD/target PYO3_PYTHON=$PWD/$python VIRTUAL_ENV=$PWD/$venv \
        "$venv/bin/maturin" develop --release --locked --quiet --manifest-path adapters/rust/Cargo.toml >&2
    stamp rust "$inputs"
}

[[ $goal =~ ^(demo|test|bench)$ ]] || die "unknown goal '$goal'; use demo, test or bench"
reason=$(missing_for_rust)
if [[ -n $reason && $goal != demo ]]; then
    die "$reason; the Rust parts cannot be tested without it"
fi
make_venv
install_python_packages
if [[ -z $reason ]]; then
    build_rust
else
    say "$reason; going on with the numcodecs backend alone"
fi
