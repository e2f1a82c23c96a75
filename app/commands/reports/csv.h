#pragma once

#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// A table of a trace as comma-separated values: RFC 4180, UTF-8, a header line, "\n" line ends. It
/// holds texts instead of ids, exact integers, and a decimal point in every locale.
namespace app {

enum class CsvTable : uint8_t { kAllocations, kLedger, kOps, kKernels, kSteps, kSweep };
inline constexpr std::array<std::string_view, 6> kCsvTableNames{"allocations", "ledger", "ops",
                                                                "kernels",     "steps",  "sweep"};

/// With a device, the rows of allocations and kernels are those of this device only.
std::string to_csv(const profiler::Trace& trace, CsvTable table,
                   profiler::Id<profiler::Device> device = {});

}  // namespace app
