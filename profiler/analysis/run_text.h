#pragma once

#include "models/config/workload.h"
#include "profiler/trace/trace.h"

#include <optional>
#include <string>
#include <string_view>

/// A run in words, and the workload that it ran: the same in every command, chart and panel.
namespace profiler {

/// The workload that a trace ran, valid as `models::validate` has it; nullopt when the trace does
/// not say (imported files) or says something that cannot be (damaged ones).
std::optional<models::Workload> workload_of(const Trace& trace);

/// "bert-large, 3 layers, layers head, B=8 S=512, fp32".
std::string describe(const models::Workload& workload);
/// The same of a trace; of one without a workload what its own columns say, if anything.
std::string describe_workload(const Trace& trace);

/// "measured on the CPU".
std::string_view describe(Source source);
/// "measured on the CPU (AMD EPYC), 2 threads, torch 2.11.0, limited to 16.0 GiB".
std::string describe_source(const Trace& trace);

}  // namespace profiler
