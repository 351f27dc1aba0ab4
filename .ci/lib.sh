# Sourced by the scripts beside it: named steps with timings, and the one list of which packages run how.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# In a clone that belongs to another user git refuses to answer, and go build would fail for want of a revision.
export GOFLAGS=${GOFLAGS:--buildvcs=false}

failed=()

# step NAME COMMAND… runs one step, prints how long it took, and remembers a failure so that the steps after it still
# run. The command gets a shell of its own in which the first failure ends it: called as the condition of an if, it
# would run on.
step() {
	local name=$1 start=$SECONDS rc
	shift
	printf '=== %s\n' "$name"
	set +e
	(
		set -euo pipefail
		"$@"
	)
	rc=$?
	set -e
	if ((rc == 0)); then
		printf -- '--- ok      %s (%ds)\n' "$name" $((SECONDS - start))
	else
		printf -- '--- FAILED  %s (%ds)\n' "$name" $((SECONDS - start))
		failed+=("$name")
	fi
}

# finish ends a script: with the list of the steps that failed, if any did.
finish() {
	if ((${#failed[@]})); then
		printf 'FAILED after %ds:' "$SECONDS"
		printf ' [%s]' "${failed[@]}"
		printf '\n'
		exit 1
	fi
	printf 'all steps passed in %ds\n' "$SECONDS"
}

# The core, the contract, the stores in memory and the example of a driver run in bubbles of virtual time, and so does the suite of the contract by the
# drivers that it convicts: they are quick under the race detector, on any machine. The suite's own tests in driver/drivertest
# are not among them: they try memlock in real time as well.
readonly bubbles='^github\.com/interlock-go/interlock(/(driver|driver/drivertest/broken|driver/line|memlock|examples/versioned))?$'

# beside are modules of their own, for what nobody who uses the library should have to load. They are tested as the rest is.
readonly beside=(cmd/interlock-lab contrib/certmagic contrib/gocron contrib/interlockotel contrib/interlockprom examples/coupons examples/recipes fence/sqlite)

# module_of prints the folder of the module that has a package, which is named by its path from here, or by its import path.
module_of() {
	local path=${1#github.com/interlock-go/interlock/} dir
	for dir in "${beside[@]}"; do
		if [[ ${path#./}/ == "$dir"/* ]]; then
			echo "$dir"
			return
		fi
	done
	echo .
}

# packages prints the packages of this module that PKG names, or all: by their import paths.
packages() {
	local p here=()
	for p in ${PKG:-./...}; do # several are separated by spaces
		[[ $(module_of "$p") != . ]] || here+=("$p")
	done
	((${#here[@]} == 0)) || go list "${here[@]}"
}

# packages_of prints the packages of a module beside this one that PKG names, or all: by their paths in there.
packages_of() {
	local p
	for p in ${PKG:-./$1/...}; do
		if [[ $(module_of "$p") == "$1" ]]; then
			p=${p#github.com/interlock-go/interlock/}
			p=${p#./}
			echo ".${p#"$1"}"
		fi
	done
}

bubble_packages() { packages | grep -E "$bubbles" || true; }
other_packages() { packages | grep -Ev "$bubbles" || true; }

# What runs for long comes first, so that none of it is left alone at the end; beside what computes most stands what mostly waits.
readonly longest=(mysqllock redlock redislock pglock zklock filelock internal/guard etcdlock internal/cli shedlock torture redissonlock
	internal/mutant driver/drivertest internal/foreigntest redisconn memcachedlock redisconn/goredis internal/servertest internal/zk internal/memcache)

# in_order sorts packages: those of longest, and then all others.
in_order() {
	awk -v longest="${longest[*]}" '
		BEGIN { n = split(longest, name, " "); for (i = 1; i <= n; i++) rank["github.com/interlock-go/interlock/" name[i]] = i }
		{ print ($0 in rank ? rank[$0] : n + 1), $0 }' | sort -s -n -k1,1 | cut -d' ' -f2
}

# modules prints the folder of each module of the repository.
modules() { find . -name go.mod -not -path '*/testdata/*' -printf '%h\n'; }
