#!/usr/bin/env bash
# Make (or refresh) a virtual environment with crowdrank in it: environment.sh FOLDER [EXTRA]
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
    echo "crowdrank needs Python 3.11 or newer; none was found. Set PYTHON=/path/to/python to name one." >&2
    exit 1
}

# What Debian and Ubuntu ship as a package of its own: installed if we may, else named. install_package PACKAGE WHY
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
if [ "$extra" = test ] && ! command -v chromium chromium-browser google-chrome >/dev/null; then
    install_package chromium "The tests that look at pages need Chromium, and will fail without it." || true
fi
if [ "$extra" = test ] && ! command -v initdb /usr/lib/postgresql/*/bin/initdb >/dev/null; then
    install_package postgresql-15 "The tests start a PostgreSQL of their own, and will fail without it." || true
fi
