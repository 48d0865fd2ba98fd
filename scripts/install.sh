#!/bin/sh
# Make .venv, or mend it, and install the kit into it: scripts/install.sh [extra]
# The Makefile calls this. PYTHON=/path/to/python chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."
here=$(pwd -P)
extra=${1:-}
case "$(uname -s)" in MINGW* | MSYS* | CYGWIN*) bin=.venv/Scripts ;; *) bin=.venv/bin ;; esac

say() { printf '%s\n' "$*" >&2; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
has_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

find_python() {
  if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python; fi
  bare=
  for candidate; do
    new_enough "$candidate" || continue
    if has_venv "$candidate"; then printf '%s\n' "$candidate"; return; fi
    bare=${bare:-$candidate}
  done
  if [ -n "$bare" ]; then
    say "$bare has no venv module. Debian and Ubuntu keep it in a package of its own:"
    say "    sudo apt install python3-venv"
    say "or, without root, take another Python: make PYTHON=/path/to/python3"
  else
    say "Python 3.11 or newer is needed. Looked for: $*"
    for candidate; do found=$("$candidate" --version 2>&1) && say "    $candidate is $found"; done
    say "Install one (python.org/downloads), or name one: make PYTHON=/path/to/python3"
    say "or use conda: conda env create -f environment.yml"
  fi
  return 1
}

# .venv/.complete says what a finished install was made from: the folder, and a checksum of what was asked for.
# While an install runs it is called .unfinished.
again=
if [ -e .venv/.unfinished ]; then
  again="The last install did not finish"
elif [ -e .venv/.complete ] && [ "$(head -n 1 .venv/.complete)" != "$here" ]; then
  again="This folder was moved, and the programs in .venv know only the old place"
elif [ -e .venv ] && ! new_enough "$bin/python"; then
  again="The Python of .venv is gone, or older than 3.11"
fi

if [ -n "$again" ] || [ ! -e .venv ]; then
  python=$(find_python)
  say "${again:+$again: }Making .venv with $("$python" --version)"
  rm -rf .venv
  mkdir .venv
  touch .venv/.unfinished
  "$python" -m venv .venv
elif [ -e .venv/.complete ]; then
  mv .venv/.complete .venv/.unfinished
fi

# An old pip resolves and unpacks at half the speed of the pinned one. Bytecode is written when a module is first
# imported, which saves a fifth of the time and a quarter of the disk.
say "Installing the kit${extra:+ with [$extra]} (once: a minute or two, longer for [full]; offline afterwards)"
"$bin/python" -m pip --version >/dev/null 2>&1 || "$bin/python" -m ensurepip >/dev/null
export PIP_DISABLE_PIP_VERSION_CHECK=1
install() {
  "$bin/python" -m pip install --quiet --no-compile -c constraints.txt "$@" && return
  say "That did not work. Without a network there is nothing to install from; behind a proxy, set https_proxy."
  say "What pip tried, in detail: $bin/python -m pip install -c constraints.txt $*"
  exit 1
}
install --upgrade pip
install -e ".${extra:+[$extra]}"
{ printf '%s\n' "$here" && cat pyproject.toml constraints.txt | cksum; } >.venv/.complete
rm -f .venv/.unfinished
