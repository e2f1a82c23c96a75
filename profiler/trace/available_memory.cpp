#include "profiler/trace/available_memory.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <fstream>
#include <string>

namespace profiler {
namespace {

namespace fs = std::filesystem;

/// The number in a file. -1: the file says "max", or there is none.
int64_t read_number(const fs::path& file) {
    int64_t value = -1;
    std::ifstream(file) >> value;
    return value > 0 ? value : -1;
}

/// The number after `key` in a file of "key number" lines. -1: there is no such line.
int64_t read_field(const fs::path& file, const std::string& key) {
    std::ifstream lines(file);
    std::string name;
    int64_t value = 0;
    for (std::string rest; lines >> name >> value; std::getline(lines, rest)) {
        if (name == key) return value;
    }
    return -1;
}

/// File caches count as used, but the kernel gives them up when a process needs memory.
int64_t free_in_group(int64_t limit, int64_t used, const fs::path& stat) {
    if (limit < 0 || used < 0) return -1;
    return std::max<int64_t>(
        0, limit - used + std::max<int64_t>(0, read_field(stat, "inactive_file")));
}

/// The group of this process and each group around it may have a limit.
int64_t free_in_cgroup_v2(const fs::path& root, fs::path group) {
    int64_t least = -1;
    for (;; group = group.parent_path()) {
        const fs::path folder = root / "sys/fs/cgroup" / group.relative_path();
        const int64_t free =
            free_in_group(read_number(folder / "memory.max"),
                          read_number(folder / "memory.current"), folder / "memory.stat");
        if (free >= 0) least = least < 0 ? free : std::min(least, free);
        if (!group.has_relative_path()) return least;
    }
}

int64_t free_in_container(const fs::path& root) {
    std::ifstream groups(root / "proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        if (line.starts_with("0::")) {
            const int64_t free = free_in_cgroup_v2(root, line.substr(3));
            if (free >= 0) return free;
        }
    }
    const fs::path v1 = root / "sys/fs/cgroup/memory";
    return free_in_group(read_number(v1 / "memory.limit_in_bytes"),
                         read_number(v1 / "memory.usage_in_bytes"), v1 / "memory.stat");
}

}  // namespace

int64_t available_memory_bytes(const fs::path& root) {
    const int64_t kibibytes = read_field(root / "proc/meminfo", "MemAvailable:");
    const int64_t container = free_in_container(root);
    if (kibibytes < 0) return container;
    return container < 0 ? kibibytes * 1024 : std::min(kibibytes * 1024, container);
}

int64_t resident_memory_bytes(const fs::path& root) {
    // "VmRSS:     1234 kB", after lines whose values are no numbers.
    std::ifstream lines(root / "proc/self/status");
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) * 1024;
    }
    return -1;
}

void give_back_memory(std::span<std::byte> memory) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
    const auto first = (begin + page - 1) / page * page;
    const auto last = (begin + memory.size()) / page * page;
    if (first < last) ::madvise(memory.data() + (first - begin), last - first, MADV_DONTNEED);
}

}  // namespace profiler
