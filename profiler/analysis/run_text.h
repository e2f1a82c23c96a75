#pragma once

#include "models/config/workload.h"
#include "profiler/trace/trace.h"

#include <optional>
#include <string>
#include <string_view>

/// A run in words, and the workload that it ran: the same in every command, chart and panel.
namespace profiler {

/// The workload that a trace ran. It has passed `models::validate`. None: the trace does not name one
/// (imported files), or names an impossible one (damaged files).
std::optional<models::Workload> workload_of(const Trace& trace);

/// "bert-large, 3 layers, layers head, B=8 S=512, fp32".
std::string describe(const models::Workload& workload);
/// The same for a trace. Without a workload, the text is made of what the run's columns say.
std::string describe_workload(const Trace& trace);

/// What identifies the captures that were measured in turn with this one, step by step; empty: it was
/// measured alone.
std::string turns_run_of(const Trace& trace);

/// "measured on the CPU".
std::string_view describe(Source source);
/// "measured on the CPU (AMD EPYC), 2 threads, torch 2.11.0, limited to 16.0 GiB".
std::string describe_source(const Trace& trace);

}  // namespace profiler
