#include "profiler/formats/snapshot/memory_timeline_writer.h"

#include "profiler/formats/parts/memory_actions.h"
#include "profiler/formats/parts/output_file.h"
#include "profiler/trace/trace_notes.h"

namespace profiler {
namespace {

constexpr int kPreexisting = 1;
constexpr int kCreate = 2;
constexpr int kDestroy = 4;

int timeline_category(Category category) {
    switch (category) {
        case Category::kParameter:
            return 0;
        case Category::kOptimizerState:
            return 1;
        case Category::kInput:
            return 2;
        case Category::kTemporary:
        case Category::kWorkspace:
            return 3;
        case Category::kActivation:
            return 4;
        case Category::kGradient:
            return 5;
        default:
            return 7;
    }
}

}  // namespace

models::Result<void> write_memory_timeline(const Trace& trace, const std::filesystem::path& path) {
    if (trace.allocations.empty()) {
        return models::fail(
            "{} is not written: the trace holds no allocations, and a memory timeline holds "
            "nothing else.",
            path.string());
    }
    auto file = OutputFile::create(path);
    if (!file) return tl::unexpected(file.error());
    const int64_t start_ns = trace.run().start_unix_ns;
    const int64_t first_event = num_start_events(trace);
    file->write("[");
    JsonList list(*file);
    for (const MemoryAction& action : memory_actions(trace, profiled_device(trace))) {
        if (action.kind == MemoryAction::kSegment) continue;
        const Id<Allocation> row(action.row);
        const Allocation block = trace.allocations[row];
        const int category = timeline_category(category_of_block(trace, row));
        const bool is_free = action.kind == MemoryAction::kFree;
        const bool was_there = action.event < first_event;
        list.add("[{}, {}, {}, {}]", was_there ? -1 : start_ns + action.time_ns,
                 is_free     ? kDestroy
                 : was_there ? kPreexisting
                             : kCreate,
                 is_free ? -block.block_bytes : block.block_bytes, category);
    }
    list.flush();
    file->write("\n]\n");
    return file->finish();
}

}  // namespace profiler
