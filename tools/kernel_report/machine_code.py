"""Reads GPU machine code as cuobjdump prints it, and finds the path that a warp takes through it.

A kernel has branches for edges, options and slow cases. A path is named by the accesses to global
memory that it makes: {"LDG.128": 1, "STG.128": 1, "STG.8": 1} is one load and one store of 16 bytes
and one store of a byte for each thread. "BAR", "LDS" and "SHFL" (barriers, loads of shared memory,
shuffles) may name a path further. Of all paths that do exactly this, hot_path() takes the one with
the fewest instructions.

A branch on data, such as a case of a formula, is not a choice: the 32 lanes of a warp hold numbers
of both cases, so the warp runs both sides. hot_path() adds the other side of every branch whose
predicate follows from what was loaded.
"""

import collections
import dataclasses
import heapq
import re
import subprocess


@dataclasses.dataclass(frozen=True)
class Instruction:
    address: int
    predicate: str  # "@!P0", or "" if it always runs
    opcode: str  # "LDG.E.128"
    operands: str

    @property
    def base(self):
        """The operation without its modifiers, such as LDG."""
        return self.opcode.split(".")[0]

    @property
    def access(self):
        """"LDG.128" for an access to global memory of 128 bits a thread, or a name of OPTIONAL, or
        ""."""
        if self.base in OPTIONAL:
            return self.base
        if self.base not in ("LDG", "STG"):
            return ""
        width = next((w for m in self.opcode.split(".") if (w := WIDTHS.get(m))), 32)
        return f"{self.base}.{width}"

    @property
    def target(self):
        return int(re.findall(r"0x([0-9a-f]+)", self.operands)[-1], 16)


OPTIONAL = ("BAR", "LDS", "SHFL")  # they count only where a path names them
WIDTHS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128}
LINE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")


def disassemble(cuobjdump, library, architecture, functions=()):
    """{demangled name: [Instruction]} of the kernels in a library for one architecture ("sm_90").
    `functions` are the mangled names of the only ones to read. Raises CalledProcessError."""
    only = ["-fun", ",".join(functions)] if functions else []
    command = [cuobjdump, "-sass", "-arch", architecture, *only, library]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = demangle(re.findall(r"Function : (\S+)", text))
    return dict(zip(names, map(instructions_of, re.split(r"Function : \S+\n", text)[1:])))


@dataclasses.dataclass(frozen=True)
class Resources:
    mangled: str  # name
    registers: int  # of a thread
    stack_bytes: int  # of a thread: spilled registers, and arrays that do not fit in registers
    shared_bytes: int  # of a block


USAGE = re.compile(r" Function (\S+):\n.*?REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


def resources_of(cuobjdump, library, architecture):
    """{demangled name: Resources} of the kernels in a library for one architecture ("sm_90")."""
    command = [cuobjdump, "-res-usage", "-arch", architecture, library]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = USAGE.findall(text)
    return {name: Resources(mangled, int(registers), int(stack) + int(local), int(shared))
            for name, (mangled, registers, stack, shared, local)
            in zip(demangle([one[0] for one in found]), found)}


def demangle(names):
    text = "\n".join(names)
    command = ["c++filt"]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def instructions_of(text):
    found = (LINE.match(line) for line in text.splitlines())
    return [Instruction(int(m[1], 16), m[2] or "", m[3], m[4]) for m in found if m]


# --- control flow --------------------------------------------------------------------------------


@dataclasses.dataclass
class Path:
    """What one thread runs. `times` counts the passes of each instruction; `visited` is their order
    in one pass."""

    times: dict  # {Instruction: passes}
    visited: list

    @property
    def count(self):
        return sum(self.times.values())

    def of_class(self, classify):
        """{class: instructions}."""
        found = collections.Counter()
        for instruction, passes in self.times.items():
            found[classify(instruction)] += passes
        return found

    def innermost_loop(self, access):
        """One pass of the smallest loop on the path that makes `access`; the path if it is in no
        loop."""
        loops = loops_of(self.times)
        bodies = [(len(body), branch.address, branch) for branch, body in loops.items()
                  if any(one.access == access for one in body)]
        if not bodies:
            return self
        branch = min(bodies)[2]
        inside = {one: self.times[one] / self.times[branch] for one in loops[branch]}
        return Path(inside, [one for one in self.visited if one in inside])

    def waits(self, streams=0):
        """How often a warp waits for loads: each wait is for all that it has sent. Only the first
        `streams` loads of 128 bits come from memory (0: all); the others find a cache."""
        waits, sent, pending = 0, 0, set()
        for one in self.visited:
            written, read = written_and_read(one)
            if read & pending:
                waits, pending = waits + 1, set()
            if one.base == "LDG":
                sent += one.access == "LDG.128"
                if one.access != "LDG.128" or not streams or sent <= streams:
                    pending |= written
        return waits


def next_addresses(instructions, index):
    """Where a warp can go after an instruction. A call of a slow case is not a way to go on; under
    a predicate it is how code for sm_80 leaves a loop."""
    one = instructions[index]
    following = instructions[index + 1].address if index + 1 < len(instructions) else None
    falls = following is not None and (one.predicate or one.base not in STOPS)
    ways = [following] if falls else []
    if one.base == "CALL" and one.predicate:
        return [following, one.target]
    if one.base == "BRA" and one.predicate != "@!PT":
        conditional = one.predicate or re.match(r"!?U?P\d", one.operands) or ".DIV" in one.opcode
        ways = ([following] if conditional and following is not None else []) + [one.target]
    return ways


STOPS = {"EXIT", "BRA", "RET", "BRX", "JMP", "CALL", "BPT", "KILL"}


def hot_path(instructions, accesses, repeats=(), uniform=()):
    """The shortest path from the first instruction to an exit that makes exactly `accesses`, with
    both sides of branches on data, as a Path; None if there is none. A loop's body runs once.
    `repeats` are (access, passes): a loop whose body makes that access runs so often. `uniform` are
    accesses that load one value for all lanes, on which a branch is a choice."""
    for goes_back in (False, True):
        visited = shortest_way(instructions, accesses, goes_back)
        if visited:
            return with_other_sides(with_repeats(visited, repeats), uniform, instructions)
    return None


def shortest_way(instructions, accesses, goes_back):
    """The instructions of hot_path's way, in their order; None if there is none. Without
    `goes_back` it never goes back over one of the accesses, and the search leaves a way as soon as
    what lies ahead has too few of them."""
    index_at = {one.address: i for i, one in enumerate(instructions)}
    wanted = tuple(sorted(accesses))
    target = tuple(accesses[name] for name in wanted)
    ahead = most_ahead(instructions, index_at, wanted)
    start = (0, tuple(0 for _ in wanted), frozenset())
    best, queue, ties = {start: (0, None)}, [(0, 0, start)], 0
    while queue:
        length, _, state = heapq.heappop(queue)
        index, made, taken = state
        one = instructions[index]
        if length > best[state][0]:
            continue
        if one.base == "EXIT" and made == target:
            return trace_back(best, state, instructions)
        for then in accesses_after(one, made, wanted, accesses):
            for address in next_addresses(instructions, index):
                back = address <= one.address
                if address not in index_at or back and one.address in taken:
                    continue
                after = index_at[address]
                if not goes_back and (back and ahead[after] != ahead[index] or any(
                        n + most < goal for n, most, goal in zip(then, ahead[after], target))):
                    continue
                after = (after, then, taken | {one.address} if back else taken)
                if length + 1 < best.get(after, (float("inf"),))[0]:
                    best[after] = (length + 1, state)
                    ties += 1
                    heapq.heappush(queue, (length + 1, ties, after))
    return None


def most_ahead(instructions, index_at, wanted):
    """The most that a way from each instruction on, which never goes back, can make of `wanted`."""
    most = [tuple(0 for _ in wanted)] * len(instructions)
    for i in reversed(range(len(instructions))):
        ways = [most[index_at[address]] for address in next_addresses(instructions, i)
                if index_at.get(address, -1) > i]
        best = map(max, zip(*ways)) if ways else most[i]
        most[i] = tuple(n + (name == instructions[i].access) for n, name in zip(best, wanted))
    return most


def straight_path(instructions):
    """Everything up to the last exit, once: code without loops, with both sides of its branches.
    Subroutines follow the last exit."""
    ends = [i for i, one in enumerate(instructions) if one.base == "EXIT"]
    visited = instructions[: ends[-1] + 1]
    return Path(dict.fromkeys(visited, 1), visited)


def accesses_after(one, made, wanted, accesses):
    """The accesses made after an instruction. One under a predicate may be made or not."""
    if not one.access or one.access in OPTIONAL and one.access not in accesses:
        return [made]
    more = tuple(n + (name == one.access) for n, name in zip(made, wanted))
    allowed = one.access in accesses and all(n <= accesses[w] for n, w in zip(more, wanted))
    return ([more] if allowed else []) + ([made] if one.predicate else [])


def trace_back(best, state, instructions):
    visited = []
    while state is not None:
        visited.append(instructions[state[0]])
        state = best[state][1]
    return visited[::-1]


# --- branches on data ----------------------------------------------------------------------------

REGISTER = re.compile(r"\bU?(?:R|P)\d+\b")
PREDICATE = re.compile(r"!?U?P(?:\d|T)$")
ONLY_PREDICATES = ("SETP", "PLOP3", "FCHK")  # they write no other register
WIDE = {"WIDE": 2, "64": 2, "128": 4}


def written_and_read(one):
    """The registers that an instruction writes, and those that it reads."""
    parts = [part.strip() for part in one.operands.split(",")] if one.operands else []
    count = 0
    if one.base not in STORES and one.base not in STOPS:
        while count < len(parts) and PREDICATE.match(parts[count]):
            count += 1
        if not one.base.endswith(ONLY_PREDICATES) and count < len(parts):
            count += 1
            while count < len(parts) and PREDICATE.match(parts[count]):
                count += 1
        elif one.base.endswith(ONLY_PREDICATES):
            count = min(count, 2)
    width = max((WIDE.get(m, 1) for m in one.opcode.split(".")[1:]), default=1)
    written = set()
    for part in parts[:count]:
        for name in REGISTER.findall(part):
            letters, number = re.match(r"(\D+)(\d+)", name).groups()
            span = width if letters in ("R", "UR") else 1
            written |= {f"{letters}{int(number) + i}" for i in range(span)}
    read = {name for part in parts[count:] for name in REGISTER.findall(part)}
    return written, read | set(REGISTER.findall(one.predicate))


STORES = {"STG", "STS", "STL", "ST", "RED"}
LOADS = {"LDG", "LDS"}


def branches_on_data(visited, uniform):
    """The branches on a way whose predicate depends on values that differ between lanes."""
    tainted, found = set(), []
    for one in visited:
        written, read = written_and_read(one)
        if one.base == "BRA":
            if read & tainted:
                found.append(one)
        elif one.base in LOADS and one.access not in uniform or read & tainted:
            tainted |= written
        elif not one.predicate:  # under a predicate the old value may stay
            tainted -= written
    return found


def with_other_sides(path, uniform, instructions):
    """The path, and what the other sides of its branches on data run until they are back on it. A
    side that leaves the kernel or loads is a rare case, not a side; so is what calls a subroutine
    on a side, whose other instructions count."""
    index_at = {one.address: i for i, one in enumerate(instructions)}
    times = dict(path.times)
    for branch in branches_on_data(path.visited, uniform):
        side = {}
        ways = next_addresses(instructions, index_at[branch.address])
        while ways:
            one = instructions[index_at[ways.pop()]]
            if one in times or one in side or one.base == "CALL":
                continue
            side[one] = path.times[branch]
            ways += next_addresses(instructions, index_at[one.address])
        if not any(one.base in RARE or one.access for one in side):
            times |= side
    return Path(times, path.visited)


RARE = {"EXIT", "RET"}


def loops_of(times):
    """{back branch: instructions of its loop's body}: those on a path from its target to it."""
    return {
        branch: [one for one in times if branch.target <= one.address <= branch.address]
        for branch in times
        if branch.base == "BRA" and branch.target <= branch.address
    }


def with_repeats(visited, repeats):
    times = collections.Counter(visited)
    for branch, body in loops_of(times).items():
        passes = next((n for access, n in repeats if any(one.access == access for one in body)), 1)
        met = times[branch]
        for one in body if passes > 1 else []:
            times[one] = times[one] * passes // met
    return Path(dict(times), visited)

