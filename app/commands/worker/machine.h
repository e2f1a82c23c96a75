#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What `temposcope doctor` looks at: this program, its worker and what that finds, the machine.
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
    std::string remedy;  // one sentence when something can be done about it
};

struct MachineReport {
    std::vector<MachineCheck> checks;
    bool can_capture = false;  // steps on the CPU, at least
};

MachineReport examine_machine();

}  // namespace app
