# shellcheck shell=bash
# What `./test` needs from the machine beyond Rust: found here, or installed here with apt and
# npm, or named here. Sourced by `./test`, which sets `root` and `target`.
#
# Sets and exports what the browser step uses: NODE, CHROMIUM.
: "${root:?}" "${target:?}"

node_major_needed=20   # playwright-core asks for it
node_version=22.23.3   # taken from npm where the distribution's own is older

compiles_c() {
  command -v cc >/dev/null && echo 'int main(void) { return 0; }' | cc -x c -o /dev/null - 2>/dev/null
}

has_postgres() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null
}

has_mariadb() {
  PATH=$PATH:/usr/sbin command -v mariadbd >/dev/null \
    && command -v mariadb-install-db >/dev/null && command -v mariadb >/dev/null
}

is_recent_node() { # PROGRAM
  [[ -n $1 && -x $1 ]] && "$1" -e "process.exit(+(process.versions.node.split('.')[0] < $node_major_needed))"
}

node_from_npm() {
  local arch=x64
  [[ $(uname -m) != aarch64 ]] || arch=arm64
  printf '%s\n' "$target/node/node_modules/node-linux-$arch/bin/node"
}

# Prints the newest Node that will do, if there is one.
find_node() {
  local candidate
  for candidate in "${NODE-}" "$(command -v node || true)" "$(node_from_npm)"; do
    if is_recent_node "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# A browser counts only if it runs: Ubuntu's chromium-browser is a stub that asks for snap.
find_chromium() {
  local candidate
  for candidate in "${CHROMIUM-}" chromium chromium-browser google-chrome google-chrome-stable \
    "$target"/browsers/*/*/{headless_shell,chrome-headless-shell}; do
    candidate=$(command -v "${candidate:-/nonexistent}" || true)
    if [[ -n $candidate ]] && "$candidate" --version >/dev/null 2>&1; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

apt_knows() { # PACKAGE
  [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [^\(] ]]
}

# Prints the Debian packages that would provide what is missing, one per line.
missing_packages() { # quick|full
  compiles_c || printf '%s\n' gcc libc6-dev
  command -v xz >/dev/null || echo xz-utils
  command -v curl >/dev/null || echo curl
  [[ $1 == full ]] || return 0
  has_postgres || echo postgresql
  if ! has_mariadb; then
    # The -core packages are the programs alone: no system service, no configuration.
    if apt_knows mariadb-server-core; then
      printf '%s\n' mariadb-server-core mariadb-client-core
    else
      echo mariadb-server
    fi
  fi
  command -v promtool >/dev/null || echo prometheus
  command -v node >/dev/null || find_node >/dev/null || echo nodejs
  command -v npm >/dev/null || echo npm
  find_chromium >/dev/null || ! chromium_comes_from_apt || echo chromium
  [[ -e /etc/ssl/certs/ca-certificates.crt ]] || echo ca-certificates
}

# Ubuntu has Chromium as a snap only, which containers cannot run.
chromium_comes_from_apt() {
  ! grep -qs '^ID=ubuntu' /etc/os-release
}

may_install() {
  [[ ${PLIMSOLL_TEST_INSTALL-yes} != no ]]
}

# Sets `as_root`, the words to put before a command that needs root, or fails.
become_root() {
  if ! may_install; then
    return 1
  elif ((EUID == 0)); then
    as_root=()
  elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    return 1
  fi
}

# Installs without starting or creating any system database: ours are temporary.
apt_install() { # PACKAGE…
  local log=$target/apt.log policy=/usr/sbin/policy-rc.d clusters=/etc/postgresql-common/createcluster.d
  local status=0 made_policy=0
  if [[ ! -e $policy ]]; then
    made_policy=1
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
  fi
  "${as_root[@]}" mkdir -p "$clusters"
  echo 'create_main_cluster = false' | "${as_root[@]}" tee "$clusters/plimsoll-test.conf" >/dev/null

  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q -y)
  {
    "${apt[@]}" install --no-install-recommends "$@" \
      || { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "$@"; }
  } >"$log" 2>&1 </dev/null || status=$?

  "${as_root[@]}" rm -f "$clusters/plimsoll-test.conf"
  "${as_root[@]}" rmdir -p --ignore-fail-on-non-empty "$clusters" 2>/dev/null || true
  ((!made_policy)) || "${as_root[@]}" rm -f "$policy"
  ((status == 0)) || tail -20 "$log"
  return "$status"
}

# Installs what is missing, or says exactly what is and fails.
provide_requirements() { # quick|full
  local packages component missing=()
  command -v cargo >/dev/null || missing+=('Rust with cargo (https://rustup.rs)')
  for component in fmt clippy; do
    cargo "$component" --version >/dev/null 2>&1 \
      || missing+=("cargo $component (rustup component add ${component/fmt/rustfmt})")
  done
  if ((${#missing[@]})); then
    printf 'Missing: %s\n' "${missing[@]}"
    return 1
  fi

  mapfile -t packages < <(missing_packages "$1")
  if ((${#packages[@]})); then
    echo "Missing: ${packages[*]}"
    if ! command -v apt-get >/dev/null || ! become_root; then
      echo 'These packages are needed and may not be installed from here. Run as root, or let sudo'
      echo 'work without a password, or install them first:'
      echo "  apt-get install --no-install-recommends ${packages[*]}"
      return 1
    fi
    # A fresh container knows no packages yet; missing_packages then names the plain choice.
    if ! apt_knows "${packages[0]}"; then
      "${as_root[@]}" apt-get -q update >/dev/null
      mapfile -t packages < <(missing_packages "$1")
    fi
    echo "Installing ${packages[*]}"
    apt_install "${packages[@]}" || return 1
    mapfile -t packages < <(missing_packages "$1")
    if ((${#packages[@]})); then
      echo "Still missing after the installation: ${packages[*]}"
      return 1
    fi
  fi
  [[ $1 == quick ]] || provide_browser_tools
}

# Node, the packages of playwright/ and Chromium. npm writes below the repository only, so this
# needs no root, except for the shared libraries of a Chromium that is not a Debian package.
provide_browser_tools() {
  local npm_log=$target/npm.log
  if ! find_node >/dev/null; then
    if ! may_install; then
      echo "Missing: Node $node_major_needed or newer (this machine's is $(node --version))"
      return 1
    fi
    echo "Taking Node $node_version from npm: this machine's is $(node --version)"
    local package
    package=$(basename "$(dirname "$(dirname "$(node_from_npm)")")")
    npm install --prefix "$target/node" --no-save --no-audit --no-fund \
      "$package@$node_version" >"$npm_log" 2>&1 || { tail -20 "$npm_log"; return 1; }
  fi
  NODE=$(find_node) || { echo "Missing: Node $node_major_needed or newer"; return 1; }

  local installed=$root/playwright/node_modules/.package-lock.json
  if [[ ! -e $installed || $root/playwright/package-lock.json -nt $installed ]]; then
    if ! may_install; then
      echo 'Missing: the packages of playwright/package-lock.json (npm ci in playwright/)'
      return 1
    fi
    echo 'Installing the Node packages of playwright/'
    (cd "$root/playwright" && npm ci) >"$npm_log" 2>&1 || {
      tail -20 "$npm_log"
      echo 'Missing: the packages of playwright/package-lock.json; npm ci could not fetch them'
      return 1
    }
  fi

  if ! find_chromium >/dev/null; then
    if ! become_root; then
      echo 'Missing: Chromium, or Chrome, in the PATH or named by CHROMIUM'
      return 1
    fi
    echo 'Installing a headless Chromium with Playwright'
    (cd "$root/playwright" && PLAYWRIGHT_BROWSERS_PATH=$target/browsers \
      "$NODE" node_modules/playwright-core/cli.js install --with-deps --only-shell chromium) \
      >"$target/chromium.log" 2>&1 </dev/null || {
      tail -20 "$target/chromium.log"
      echo 'Missing: Chromium, or Chrome, in the PATH or named by CHROMIUM; Playwright could not fetch one'
      return 1
    }
  fi
  CHROMIUM=$(find_chromium) || { echo 'Missing: a Chromium that runs'; return 1; }
  export NODE CHROMIUM
}
