#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What `temposcope doctor` checks: the machine, the worker, and what the worker needs.
namespace app {

enum class CheckStatus : uint8_t { kOk, kWarning, kMissing };
inline constexpr std::array<std::string_view, 3> kCheckStatusNames{"ok", "warning", "missing"};
constexpr std::string_view name_of(CheckStatus s) {
    return kCheckStatusNames[static_cast<size_t>(s)];
}

struct MachineCheck {
    std::string name;  // "worker", "torch", "driver", "display"
    CheckStatus status = CheckStatus::kOk;
    std::string detail;  // "2.11.0"
    std::string remedy;  // one sentence on what to do; empty if nothing
};

struct MachineReport {
    std::vector<MachineCheck> checks;
    bool can_capture = false;  // at least on the CPU
};

MachineReport examine_machine();

}  // namespace app
