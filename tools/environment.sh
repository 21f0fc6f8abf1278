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

# Debian and Ubuntu ship venv apart from Python itself.
install_venv() {
    local package
    package="$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "Installing $package …" >&2
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >&2
    else
        echo "Python's venv module is missing. Install it, then run this again:  sudo apt-get install $package" >&2
        exit 1
    fi
}

python=$(find_python)
if [ ! -x "$folder/bin/python" ]; then
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        install_venv "$python"
    fi
    "$python" -m venv "$folder"
fi
echo "Installing crowdrank${extra:+ [$extra]} into $folder …" >&2
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -e ".${extra:+[$extra]}"
