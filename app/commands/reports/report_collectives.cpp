#include "app/commands/reports/reports.h"
#include "profiler/analysis/ranks/collectives.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <string>

namespace app {
namespace {

using namespace profiler;

/// "mesh_shard"; "group 3" if torch has no description of it.
std::string name_of(const Trace& trace, Id<Communicator> communicator) {
    if (!communicator.valid()) return "–";
    const Communicator row = trace.communicators[communicator];
    const std::string_view description = trace.text(row.description);
    if (!description.empty() && description != "undefined") return std::string(description);
    return fmt::format("group {}", trace.text(row.name));
}

int64_t num_ranks(const Trace& trace, Id<Communicator> communicator) {
    return communicator.valid() ? trace.communicators.get<&Communicator::num_ranks>(communicator)
                                : -1;
}

}  // namespace

void print_collectives(Output& output, const Trace& trace) {
    const auto totals = collectives_of(trace, last_step(trace));
    if (totals.empty()) return;
    output.heading(trace.steps.empty() ? "Collectives" : "Collectives of a step");
    TextTable table;
    table.columns = {{"kind", Align::kLeft},   {"group", Align::kLeft}, {"ranks", Align::kRight},
                     {"calls", Align::kRight}, {"in", Align::kRight},   {"out", Align::kRight},
                     {"time", Align::kRight}};
    for (const CollectiveTotal& total : totals) {
        const int64_t ranks = num_ranks(trace, total.communicator);
        table.rows.push_back({std::string(profiler::name_of(total.kind)),
                              name_of(trace, total.communicator),
                              ranks > 0 ? format_count(ranks) : "–", format_count(total.count),
                              format_bytes(total.in_bytes), format_bytes(total.out_bytes),
                              total.time_ns > 0 ? format_duration(total.time_ns) : "–"});
    }
    output.table(table);
}

nlohmann::json collectives_json(const Trace& trace) {
    nlohmann::json rows = nlohmann::json::array();
    for (const CollectiveTotal& total : collectives_of(trace, last_step(trace))) {
        rows.push_back({{"kind", profiler::name_of(total.kind)},
                        {"group", name_of(trace, total.communicator)},
                        {"num_ranks", num_ranks(trace, total.communicator)},
                        {"count", total.count},
                        {"in_bytes", total.in_bytes},
                        {"out_bytes", total.out_bytes},
                        {"time_ns", total.time_ns}});
    }
    return rows;
}

}  // namespace app
