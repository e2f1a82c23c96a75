#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

/// Independent pieces of work on several threads.
namespace profiler {

/// Calls `act` with 0 to `count` - 1 on `num_threads` threads, one of which is the caller's. If the
/// system starts no more threads, those that there are do the work.
template <typename Act>
void for_each_at_once(std::size_t count, std::size_t num_threads, const Act& act) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < count; i = next++) act(i);
    };
    std::vector<std::future<void>> others;
    try {
        for (std::size_t i = 1; i < std::min(num_threads, count); ++i) {
            others.push_back(std::async(std::launch::async, work));
        }
    } catch (const std::system_error&) {
    }
    work();
    for (std::future<void>& other : others) other.get();
}

template <typename Act>
void for_each_on_all_cores(std::size_t count, const Act& act) {
    for_each_at_once(count, std::max(1U, std::thread::hardware_concurrency()), act);
}

}  // namespace profiler
