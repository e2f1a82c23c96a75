# Shared by the scripts: paths, progress and failures.
# shellcheck shell=bash disable=SC2034

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
say() { printf '%s\n' "$*"; }

# Prints one sentence, which names the remedy, and exits.
fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

[[ -n ${TEMPOSCOPE_DEPS:-}${XDG_CACHE_HOME:-}${HOME:-} ]] ||
    fail "neither HOME nor TEMPOSCOPE_DEPS is set, so there is no private folder; set one of them."
DEPS=$(realpath -m "${TEMPOSCOPE_DEPS:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/temposcope}")
export TEMPOSCOPE_DEPS=$DEPS  # for cmake/deps/Folder.cmake
VENV=$DEPS/venv
BUILD=$ROOT/build
# The versions of torch that are supported beside the one of scripts/setup (docs/dev/new_torch.md).
OTHER_TORCHES=2.8,2.9,2.10,2.12,2.13,2.14,2.15
OLDEST_TORCH=2.8
NEWEST_TORCH=2.15

# Ends the script if a folder on the way to the private folder, or that folder, is closed to this user.
check_folder_is_open() {
    local folder=$DEPS closed=
    while [[ $folder != / ]]; do
        [[ -d $folder && ! -x $folder ]] && closed=$folder
        folder=$(dirname "$folder")
    done
    [[ -z $closed ]] ||
        fail "$DEPS cannot be read, because this user may not enter $closed; ask its owner to open it, or set TEMPOSCOPE_DEPS to another folder."
}

# say_next WHAT TIME [NEED]: says before a step how long it takes on two idle cores.
say_next() { say "Next: $1, about $2 on two idle cores${3:+ with $3}."; }

# run_step WHAT LOG COMMAND...: runs a command with its output in LOG. On a terminal one line shows the time and the
# command's last output. Elsewhere a line every half minute shows that the command still runs.
run_step() {
    local what=$1 log=$2 start=$SECONDS told=$SECONDS pid status line
    shift 2
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    # Ctrl-C ends the command too.
    trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; exit 130' INT TERM
    [[ -t 1 ]] || say "$what ..."
    while kill -0 "$pid" 2>/dev/null; do
        if [[ -t 1 ]]; then
            line=$(tail -c 400 "$log" | tr '\r' '\n' | sed '/^ *$/d' | tail -n 1 | tr -d '\033' | cut -c1-60)
            printf '\r\033[K%s ... %d s  \033[2m%s\033[0m' "$what" $((SECONDS - start)) "$line"
            sleep 0.3
        else
            sleep 0.3
            if ((SECONDS - told >= 30)); then
                say "  still running after $((SECONDS - start)) s"
                told=$SECONDS
            fi
        fi
    done
    wait "$pid" && status=0 || status=$?
    trap - INT TERM
    [[ -t 1 ]] && printf '\r\033[K'
    if ((status == 0)); then
        say "$what: done in $((SECONDS - start)) s"
    else
        say "$what: failed after $((SECONDS - start)) s" >&2
    fi
    return "$status"
}

# How many compilers run at a time: one per core, if there are about 2 GB of free memory for each. torch's headers need that.
job_count() {
    local cores memory_mb jobs
    cores=$(nproc)
    memory_mb=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
    jobs=$((memory_mb / 1800 < cores ? memory_mb / 1800 : cores))
    echo $((jobs < 1 ? 1 : jobs))
}
