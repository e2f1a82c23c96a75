#include "profiler/trace/file/temporary_paths.h"

#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace profiler {
namespace fs = std::filesystem;
namespace {

enum class SlotState { kFree, kTaken, kReady };
static_assert(std::atomic<SlotState>::is_always_lock_free);

/// A signal handler reaches nothing but globals, and may not allocate or lock.
struct Slot {
    std::atomic<SlotState> state = SlotState::kFree;
    std::array<char, PATH_MAX> path{};
};
std::array<Slot, 32> g_slots;

int take_slot(const std::string& path) {
    if (path.size() >= PATH_MAX) return -1;
    for (std::size_t i = 0; i < g_slots.size(); ++i) {
        SlotState expected = SlotState::kFree;
        if (!g_slots[i].state.compare_exchange_strong(expected, SlotState::kTaken)) continue;
        std::memcpy(g_slots[i].path.data(), path.c_str(), path.size() + 1);
        g_slots[i].state = SlotState::kReady;
        return static_cast<int>(i);
    }
    return -1;
}

}  // namespace

// A relative path would mean another file after a change of the folder.
RemovedOnSignal::RemovedOnSignal(const fs::path& path) {
    std::error_code error;
    const fs::path absolute = fs::absolute(path, error);
    if (!error) slot_ = take_slot(absolute.string());
}

RemovedOnSignal::RemovedOnSignal(RemovedOnSignal&& other) noexcept
    : slot_(std::exchange(other.slot_, -1)) {}

RemovedOnSignal::~RemovedOnSignal() {
    if (slot_ >= 0) g_slots[static_cast<std::size_t>(slot_)].state = SlotState::kFree;
}

void remove_temporary_paths() {
    const int error_before = errno;  // of the call that a signal interrupted
    const auto remove_with = [](int (*remove)(const char*)) {
        for (const Slot& slot : g_slots) {
            if (slot.state == SlotState::kReady) remove(slot.path.data());
        }
    };
    remove_with(::unlink);
    remove_with(::rmdir);  // folders are empty now
    errno = error_before;
}

void remove_paths_and_end(int signal) {
    remove_temporary_paths();
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // takes effect when the handler returns
}

void remove_paths_on_signals() {
    struct sigaction action {};
    action.sa_handler = remove_paths_and_end;
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction old {};
        sigaction(number, nullptr, &old);
        if (old.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
    }
}

TemporaryFolder::TemporaryFolder() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "temposcope-XXXXXX").string();
    if (error) {
        error_ = error.value();
    } else if (::mkdtemp(name.data()) == nullptr) {
        error_ = errno;
    } else {
        path_ = name;
        removed_on_signal_.emplace(path_);
    }
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (exists()) fs::remove_all(path_, ignored);
}

}  // namespace profiler
