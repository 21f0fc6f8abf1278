#!/usr/bin/env bash
# Create or update a virtual environment with crowdrank installed: environment.sh FOLDER [EXTRA]
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
extra=${2:-}

find_python() {
    for name in "${PYTHON:-python3}" python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            command -v "$name"
            return
        fi
    done
    echo "crowdrank needs Python 3.11 or newer, which was not found. Set PYTHON=/path/to/python to name one." >&2
    exit 1
}

# Install a Debian or Ubuntu package if we are root, otherwise print how to install it: install_package PACKAGE REASON
install_package() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "Installing $1 …" >&2
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >&2
    else
        echo "$2 Install it, then run this again:  sudo apt-get install $1" >&2
        return 1
    fi
}

python=$(find_python)
if [ ! -x "$folder/bin/python" ]; then
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        venv=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        install_package "$venv" "Python's venv module is missing."
    fi
    "$python" -m venv "$folder"
fi
echo "Installing crowdrank${extra:+ [$extra]} into $folder …" >&2
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -e ".${extra:+[$extra]}"
if [ "$extra" = test ] && ! "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[docs,mcp]'; then
    echo "The extras docs and mcp cannot be installed, so the tests of the site and of crowdrank mcp are skipped." >&2
fi
if [ "$extra" = test ] && ! command -v chromium chromium-browser google-chrome >/dev/null; then
    install_package chromium "The browser tests need Chromium and will fail without it." || true
fi
if [ "$extra" = test ] && ! command -v initdb /usr/lib/postgresql/*/bin/initdb >/dev/null; then
    install_package postgresql-15 "The tests start their own PostgreSQL server and will fail without it." || true
fi
