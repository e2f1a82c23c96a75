#pragma once

#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The memory that is allocated at the peak, or saved for backward, in groups.
namespace profiler {

/// kModule: paths without their numbers, so that the modules of all layers are one group.
enum class GroupBy : uint8_t { kClass, kLayer, kModule, kModuleType, kOp, kTensor, kLine };
inline constexpr std::array<std::string_view, 7> kGroupByNames{
    "class", "layer", "module", "module-type", "op", "tensor", "line"};
constexpr std::string_view name_of(GroupBy v) { return kGroupByNames[static_cast<size_t>(v)]; }
/// nullopt for what is not one of kGroupByNames.
std::optional<GroupBy> find_group_by(std::string_view name);

/// The group that says most: the line of code where a trace has call stacks but no classes, else
/// the class.
GroupBy default_group_by(const Trace& trace);

struct BreakdownRow {
    std::string name;  // "activation"; "encoder.layer.3"; "layer.*.mlp.fc*"; "Dropout"; "aten::mm";
                       // "query"; "model.py:54 forward"
    int64_t size_bytes = 0;
    int64_t count = 0;  // allocations, or saved tensors
    CategoryBytes by_category{};
    std::string code;  // the text of a line of code; empty: not recorded
};

/// Rows by size, largest first. Their sum is peak.allocated_bytes.
std::vector<BreakdownRow> break_down(const Trace& trace, const PeakReport& peak, GroupBy by);

/// The same of what is saved for backward: layers and modules are those of the op that saved it.
/// Their sum is ledger.total_bytes.
std::vector<BreakdownRow> break_down(const Trace& trace, const Ledger& ledger, GroupBy by);

}  // namespace profiler
