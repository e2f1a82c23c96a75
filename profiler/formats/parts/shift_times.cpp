#include "profiler/formats/parts/shift_times.h"

#include <string_view>
#include <type_traits>

namespace profiler {

TimeExtent time_range_of_ops(const Trace& trace) {
    TimeExtent range;
    range.add(trace.ops.column<&Op::start_ns>());
    range.add(trace.ops.column<&Op::end_ns>());
    return range;
}

void shift_times(Trace& trace, int64_t shift_ns) {
    Trace::for_each_table(trace, [&](std::string_view table, auto& rows) {
        if (table == "run" || table == "sweep_sample") return;  // a date and durations
        rows.for_each_column([&](const auto& column, auto& values) {
            using Value = typename std::decay_t<decltype(values)>::value_type;
            if constexpr (std::is_same_v<Value, int64_t>) {
                if (!column.name.ends_with("_ns") || column.name.starts_with("free_")) return;
                for (int64_t& value : values) value += shift_ns;
            }
        });
    });
    auto& blocks = trace.allocations;  // not all were freed; a time below 0 is no sign of that
    for (const Id<Allocation> id : blocks.ids()) {
        const Allocation block = blocks[id];
        if (block.free_requested_event >= 0) {
            blocks.set<&Allocation::free_requested_ns>(id, block.free_requested_ns + shift_ns);
        }
        if (block.free_completed_event >= 0) {
            blocks.set<&Allocation::free_completed_ns>(id, block.free_completed_ns + shift_ns);
        }
    }
    const Id<Run> run(0);
    trace.runs.set<&Run::start_unix_ns>(run, trace.run().start_unix_ns - shift_ns);
}

}  // namespace profiler
