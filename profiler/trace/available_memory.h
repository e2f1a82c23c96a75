#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace profiler {

/// Memory that this machine could still give to this process, in bytes: what the kernel calls
/// available, or less where a container (cgroup v2 or v1) has a limit. -1: not known.
///
/// `root` is the folder of /proc and /sys; tests pass their own.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

/// Memory that this process holds now, in bytes. -1: not known.
int64_t resident_memory_bytes(const std::filesystem::path& root = "/");

/// Gives the whole pages of `memory` back to the system, before their owner frees them. They read
/// as zeros from then on.
void give_back_memory(std::span<std::byte> memory);

}  // namespace profiler
