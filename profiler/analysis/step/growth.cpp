#include "profiler/analysis/step/growth.h"

#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/keepers.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/recorded_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace profiler {
namespace {

/// A program that keeps a few numbers a step, such as its losses, does not fill a GPU by that.
constexpr int64_t kLeastBytesPerStep = 4096;

/// The ends of the whole steps, as event numbers, and at last the moment up to which the trace goes
/// on behind them. Empty: too few steps.
struct Ends {
    int64_t start = 0;          // of the first whole step
    std::vector<int64_t> ends;  // of each whole step, then of what follows

    std::size_t num_steps() const { return ends.empty() ? 0 : ends.size() - 1; }
    /// Whether the trace goes on behind the last whole step.
    bool has_more() const { return ends.back() > ends[ends.size() - 2]; }
};

Ends ends_of_steps(const Trace& trace) {
    const std::vector<Id<Step>> whole = whole_steps(trace);
    if (whole.size() < kFewestRises) return {};
    Ends ends{.start = trace.steps.get<&Step::first_event>(whole.front()), .ends = {}};
    for (const Id<Step> step : whole) {
        ends.ends.push_back(trace.steps.get<&Step::last_event>(step));
    }
    const Id<Failure> failure = fatal_failure(trace);
    const int64_t failed =
        failure.valid() ? trace.failures.get<&Failure::event>(failure) : ends.ends.back();
    ends.ends.push_back(std::max(failed, ends.ends.back()));
    return ends;
}

/// A block that is there when its step ends.
struct Survivor {
    StringId op;
    Id<Allocation> block;
    bool lives_on = false;  // through the next step, too
};

/// What a line keeps.
struct LineHistory {
    std::vector<int64_t> rises;  // in each whole step
    std::vector<Survivor> of_last_step, of_step_before;
    Id<Allocation> newest_named;  // of which it is known what keeps it
    std::string code;
};

class GrowthFinder {
public:
    explicit GrowthFinder(const Trace& trace)
        : trace_(trace),
          ends_(ends_of_steps(trace)),
          sites_(trace),
          storage_names_(names_of_storages(trace)),
          keepers_(trace) {}

    std::vector<GrowingLine> find() {
        if (ends_.num_steps() == 0) return {};
        const auto device = trace_.allocations.column<&Allocation::device>();
        const Id<Device> profiled = profiled_device(trace_);
        for (std::size_t i = 0; i < device.size(); ++i) {
            if (is_on(profiled, device[i])) add(Id<Allocation>(i));
        }
        std::vector<GrowingLine> growing;
        for (auto& [name, line] : lines_) {
            add_last_step(line);
            GrowingLine row = grown(name, line);
            if (row.bytes_per_step < kLeastBytesPerStep) continue;
            row.held_by = keepers_.text_of(line.newest_named);
            growing.push_back(std::move(row));
        }
        std::ranges::stable_sort(growing, std::greater(), &GrowingLine::bytes_per_step);
        return growing;
    }

private:
    /// Adds the bytes to the first step at whose end the block lives, and takes them back in the
    /// step whose successor's end it does not see.
    void add(Id<Allocation> id) {
        const Allocation block = trace_.allocations[id];
        const auto& ends = ends_.ends;
        const auto after = [&](int64_t event) {  // the first end that is later
            return static_cast<std::size_t>(std::ranges::upper_bound(ends, event) - ends.begin());
        };
        const bool is_freed = block.free_requested_event >= 0;
        // The ends that it lives to see are [born, gone).
        const std::size_t born = after(block.alloc_event);
        const std::size_t gone = is_freed ? after(block.free_requested_event) : ends.size();
        const bool is_older = block.alloc_event < ends_.start;
        const std::size_t num_steps = ends_.num_steps();
        if (is_older && gone > num_steps) return;  // it is there all the time
        if (gone == born) return;                  // it does not outlive its step
        LineHistory& line = line_of(block, id);
        if (!is_older && born + 2 >= num_steps && born < num_steps) {
            (born + 1 == num_steps ? line.of_last_step : line.of_step_before)
                .push_back({op_name_of(block), id, gone > born + 1});
        }
        const bool is_of_last_step = born + 1 == num_steps && !ends_.has_more();
        if (is_of_last_step || gone == born + 1) return;
        if (!is_older) {
            line.rises[born] += block.requested_bytes;
            see_keepers(line, id);
        }
        if (gone <= num_steps) line.rises[gone - 1] -= block.requested_bytes;
    }

    /// Nobody sees the step behind the last one. What the step before kept, this one will keep: the
    /// n-th block of an op is its like.
    void add_last_step(LineHistory& line) const {
        if (ends_.has_more()) return;
        std::map<StringId, std::size_t> num_of_op;
        for (const Survivor& one : line.of_last_step) {
            std::size_t n = num_of_op[one.op]++;
            const auto like = std::ranges::find_if(line.of_step_before, [&](const Survivor& other) {
                return other.op == one.op && n-- == 0;
            });
            if (like == line.of_step_before.end() || !like->lives_on) continue;
            line.rises.back() += trace_.allocations.get<&Allocation::requested_bytes>(one.block);
            see_keepers(line, one.block);
        }
    }

    void see_keepers(LineHistory& line, Id<Allocation> id) const {
        if (!keepers_.of(id).empty()) line.newest_named = id;
    }

    StringId op_name_of(const Allocation& block) const {
        return block.op.valid() ? trace_.ops.get<&Op::name>(block.op) : StringId();
    }

    LineHistory& line_of(const Allocation& block, Id<Allocation> id) {
        std::string name;
        if (sites_.is_of_python(block.stack)) {
            name = sites_.of(block.stack);
        } else {
            const BlockOrigin origin = origin_of(trace_, storage_names_, {}, id);
            const std::string_view op =
                origin.maker.valid() ? name_of_call(trace_, origin.maker) : "code outside of ops";
            name = origin.module_path.empty() ? std::string(op)
                                              : fmt::format("{} in {}", op, origin.module_path);
        }
        const auto [found, is_new] = lines_.try_emplace(std::move(name));
        if (is_new) {
            found->second.rises.resize(ends_.num_steps());
            found->second.code = sites_.code_of(block.stack);
        }
        return found->second;
    }

    /// Without bytes if it does not rise in the last steps.
    static GrowingLine grown(const std::string& name, const LineHistory& line) {
        const auto last_rest = std::ranges::find_if(line.rises.rbegin(), line.rises.rend(),
                                                    [](int64_t bytes) { return bytes <= 0; });
        GrowingLine row{.line = name, .code = line.code};
        row.bytes_by_step.assign(last_rest.base(), line.rises.end());
        const auto num_rises = static_cast<int64_t>(row.bytes_by_step.size());
        if (row.bytes_by_step.size() < kFewestRises) return row;
        row.bytes_per_step =
            std::reduce(row.bytes_by_step.begin(), row.bytes_by_step.end()) / num_rises;
        return row;
    }

    const Trace& trace_;
    const Ends ends_;
    const CallSites sites_;
    const std::vector<StringId> storage_names_;
    const Keepers keepers_;
    std::map<std::string, LineHistory> lines_;
};

/// -1: not known.
int64_t capacity_of(const Trace& trace) {
    const int64_t limit_bytes = step_limit_bytes(trace);
    if (limit_bytes > 0) return limit_bytes;
    const Id<Device> device = profiled_device(trace);
    return device.valid() ? trace.devices.get<&Device::total_bytes>(device) : -1;
}

}  // namespace

std::optional<int64_t> steps_until_full(const Trace& trace, const PeakReport& peak,
                                        int64_t bytes_per_step) {
    const int64_t capacity_bytes = capacity_of(trace);
    if (bytes_per_step <= 0) return std::nullopt;
    if (ran_out_of_memory(trace)) return 0;
    if (capacity_bytes <= 0) return std::nullopt;
    return std::max<int64_t>(capacity_bytes - peak.allocated_bytes, 0) / bytes_per_step;
}

std::vector<GrowingLine> growing_lines(const Trace& trace, const PeakReport& peak) {
    std::vector<GrowingLine> lines = GrowthFinder(trace).find();
    int64_t bytes_per_step = 0;
    for (const GrowingLine& line : lines) bytes_per_step += line.bytes_per_step;
    for (GrowingLine& line : lines) {
        line.steps_until_full = steps_until_full(trace, peak, bytes_per_step);
    }
    return lines;
}

}  // namespace profiler
