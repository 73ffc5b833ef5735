#!/bin/bash
# Fetches what the tests of the web console need: npm packages of the lockfile, and Debian's Chromium. Prints the browser's path; if
# something cannot be had on this machine, prints the reason instead and fails.
set -u
cd "$(dirname "$0")/../console" || exit 1

chromium() {
  local path
  for path in "${CHROMIUM:-}" /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome; do
    [ -x "$path" ] && { echo "$path"; return; }
  done
  return 1
}

command -v node >/dev/null && command -v npm >/dev/null || { echo "Node.js 20 or later is not installed"; exit 1; }
version=$(node --version)
major=${version#v}
[ "${major%%.*}" -ge 20 ] || { echo "Node.js $version is too old: 20 or later is needed"; exit 1; }

if [ ! node_modules -nt package-lock.json ]; then
  timeout 300 npm ci --ignore-scripts --no-audit --no-fund --silent >&2 || {
    # An incomplete folder would be taken for a complete one by the next run.
    rm -rf node_modules
    echo "npm cannot fetch the packages of console/package-lock.json"
    exit 1
  }
  touch node_modules
fi

if ! chromium >/dev/null; then
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || { echo "Chromium is not installed, and can be installed only as root on Debian"; exit 1; }
  export DEBIAN_FRONTEND=noninteractive
  { timeout 300 apt-get update -qq && timeout 600 apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 ||
    { echo "apt-get cannot install Chromium"; exit 1; }
fi
browser=$(chromium) || { echo "Chromium is not installed"; exit 1; }
# Some containers do not let a browser start.
timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --dump-dom about:blank >/dev/null 2>&1 ||
  { echo "$browser does not start here"; exit 1; }
echo "$browser"
