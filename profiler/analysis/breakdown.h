#pragma once

#include "profiler/analysis/peak.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The memory that is allocated at the peak, in groups.
namespace profiler {

enum class GroupBy : uint8_t { kClass, kLayer, kOp, kTensor };
inline constexpr std::array<std::string_view, 4> kGroupByNames{"class", "layer", "op", "tensor"};
/// "class", "layer", "op", "tensor"; nullopt for anything else.
std::optional<GroupBy> find_group_by(std::string_view name);

struct BreakdownRow {
    std::string name;  // "activation"; "encoder.layer.3"; "aten::_softmax"; "attention_probs"
    int64_t size_bytes = 0;
    int64_t count = 0;  // allocations
    CategoryBytes by_category{};
};

/// Rows by size, largest first; layers in their order. Their sum is peak.allocated_bytes.
std::vector<BreakdownRow> break_down(const Trace& trace, const PeakReport& peak, GroupBy by);

}  // namespace profiler
