#include "profiler/formats/join/joined_trace.h"

#include "profiler/formats/parts/shift_times.h"
#include "profiler/trace/file/schema.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

using models::Result;

/// "cuda:1" becomes "cuda:1 of rank 1", for the rows from `first` on.
template <typename Row>
void name_after_rank(Trace& trace, Table<Row>& rows, std::size_t first, int64_t rank) {
    for (std::size_t i = first; i < rows.size(); ++i) {
        const Id<Row> id(i);
        const std::string_view name = trace.text(rows.template get<&Row::name>(id));
        rows.template set<&Row::name>(id, trace.strings.intern(name_of_rank(name, rank)));
    }
}

/// The start of a device that is not analysed has its name in its code.
std::string code_in_joined(std::string_view code, std::string_view device, int64_t rank) {
    if (code == kStartState) return fmt::format("{}{}", kStartStateOf, device);
    return name_of_rank(code, rank);
}

void name_start_states_after_rank(Trace& trace, int64_t rank) {
    for (const Id<Diagnostic> note : trace.diagnostics.ids()) {
        const std::string_view code = trace.text(trace.diagnostics.get<&Diagnostic::code>(note));
        if (!code.starts_with(kStartStateOf)) continue;
        trace.diagnostics.set<&Diagnostic::code>(note,
                                                 trace.strings.intern(name_of_rank(code, rank)));
    }
}

/// Appends what is wrong with a rank, and where its start ends, to the notes of the joined trace.
void add_notes(const Trace& from, Trace& joined) {
    const int64_t rank = from.run().rank;
    const Id<Device> device = profiled_device(from);
    const std::string name = name_of_rank(
        device.valid() ? from.text(from.devices.get<&Device::name>(device)) : "", rank);
    for (const Diagnostic note : from.diagnostics.rows()) {
        const bool is_start = from.text(note.code).starts_with(kStartState);
        if (note.severity == Severity::kInfo && !is_start) continue;  // the same for all ranks
        add_diagnostic(
            joined, {.code = code_in_joined(from.text(note.code), name, rank),
                     .severity = note.severity,
                     .count = note.count,
                     .explanation = fmt::format("Rank {}: {}", rank, from.text(note.explanation))});
    }
}

/// Appends the rows of one trace to another. Ids follow their rows.
class RankRows {
public:
    RankRows(Trace& joined, const Trace& from, int64_t rank)
        : joined_(joined), from_(from), rank_(rank) {
        Trace::for_each_table(
            joined, [&](std::string_view, const auto& rows) { firsts_.push_back(rows.size()); });
        map_modules();
        map_phases();
    }

    void add() {
        add_rows(joined_.devices, from_.devices);
        add_rows(joined_.threads, from_.threads);
        name_after_rank(joined_, joined_.devices, joined_.devices.size() - from_.devices.size(),
                        rank_);
        name_after_rank(joined_, joined_.threads, joined_.threads.size() - from_.threads.size(),
                        rank_);
        add_rows(joined_.streams, from_.streams);
        add_rows(joined_.frames, from_.frames);
        add_rows(joined_.stacks, from_.stacks);
        add_rows(joined_.ops, from_.ops);
        add_rows(joined_.storages, from_.storages);
        add_rows(joined_.tensors, from_.tensors);
        add_rows(joined_.op_tensors, from_.op_tensors);
        add_rows(joined_.saves, from_.saves);
        add_rows(joined_.allocations, from_.allocations);
        add_rows(joined_.allocator_events, from_.allocator_events);
        add_rows(joined_.kernels, from_.kernels);
        add_rows(joined_.memcpys, from_.memcpys);
        add_rows(joined_.stream_waits, from_.stream_waits);
        add_rows(joined_.apis, from_.apis);
        add_rows(joined_.communicators, from_.communicators);
        add_rows(joined_.collectives, from_.collectives);
        add_rows(joined_.counters, from_.counters);
    }

private:
    template <typename Row>
    void add_rows(Table<Row>& to, const Table<Row>& from) {
        for (Row row : from.rows()) {
            std::apply([&](const auto&... column) { (map(row.*column.member), ...); },
                       Row::columns());
            to.append(row);
        }
    }

    template <typename Value>
    void map(Value& value) {
        if constexpr (schema::is_id<Value>) {
            if (value.valid()) value = mapped(value);
        }
    }

    StringId mapped(StringId text) { return joined_.strings.intern(from_.text(text)); }
    Id<ModulePath> mapped(Id<ModulePath> path) const { return modules_[path.index()]; }
    Id<Phase> mapped(Id<Phase> phase) const { return phases_[phase.index()]; }
    Id<Step> mapped(Id<Step> step) const {
        return step.index() < joined_.steps.size() ? step : Id<Step>();
    }
    template <typename Row>
    Id<Row> mapped(Id<Row> row) const {
        Id<Row> found;
        std::size_t table = 0;
        Trace::for_each_table(from_, [&](std::string_view, const auto& rows) {
            if constexpr (std::is_same_v<std::decay_t<decltype(rows)>, Table<Row>>) {
                found = Id<Row>(firsts_[table] + row.index());
            }
            ++table;
        });
        return found;
    }

    void map_modules() {
        std::unordered_map<std::string_view, Id<ModulePath>> known;
        for (const Id<ModulePath> path : joined_.module_paths.ids()) {
            known.emplace(joined_.text(joined_.module_paths.get<&ModulePath::path>(path)), path);
        }
        for (ModulePath row : from_.module_paths.rows()) {
            const auto found = known.find(from_.text(row.path));
            if (found != known.end()) {
                modules_.push_back(found->second);
                continue;
            }
            row.path = mapped(row.path);
            row.type = mapped(row.type);
            const bool is_known = row.parent.valid() && row.parent.index() < modules_.size();
            row.parent = is_known ? modules_[row.parent.index()] : Id<ModulePath>();
            modules_.push_back(joined_.module_paths.append(row));
        }
    }

    /// Maps each phase to the first rank's phase of the same kind and step.
    void map_phases() {
        const auto key_of = [](const Phase& phase, std::map<std::pair<int32_t, int>, int>& seen) {
            const auto kind = static_cast<int>(phase.kind);
            return std::tuple(phase.step.value, kind, seen[{phase.step.value, kind}]++);
        };
        std::map<std::pair<int32_t, int>, int> seen, seen_here;
        std::map<std::tuple<int32_t, int, int>, Id<Phase>> known;
        for (const Id<Phase> id : joined_.phases.ids()) {
            known[key_of(joined_.phases[id], seen)] = id;
        }
        for (const Phase phase : from_.phases.rows()) {
            const auto found = known.find(key_of(phase, seen_here));
            phases_.push_back(found == known.end() ? Id<Phase>() : found->second);
        }
    }

    Trace& joined_;
    const Trace& from_;
    int64_t rank_;
    std::vector<std::size_t> firsts_;  // of each table, the row that comes from here first
    std::vector<Id<ModulePath>> modules_;
    std::vector<Id<Phase>> phases_;
};

Result<void> check_ranks(const std::vector<const JoinInput*>& ranks) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const Run run = ranks[i]->trace.run();
        if (run.source != Source::kImported || ranks[i]->trace.ops.empty()) {
            return models::fail(
                "{} is not a trace of the PyTorch profiler with ops: join one trace of each rank "
                "of a run, or one memory snapshot and one trace of the profiler.",
                ranks[i]->name);
        }
        const bool is_beyond = run.world_size > 1 && run.rank >= run.world_size;  // 1: not said
        if (run.rank < 0 || is_beyond) {
            return models::fail(
                "{} says that it is of rank {} of {}, which cannot be: export it again.",
                ranks[i]->name, run.rank, run.world_size);
        }
        if (i == 0) continue;
        const Run before = ranks[i - 1]->trace.run();
        const double apart_ns = std::abs(static_cast<double>(run.start_unix_ns) -
                                         static_cast<double>(before.start_unix_ns));
        if (apart_ns > static_cast<double>(kMostNanosecondsApart)) {
            return models::fail(
                "{} and {} began more than 52 days apart: name the traces of one run.",
                ranks[i - 1]->name, ranks[i]->name);
        }
        if (before.world_size != run.world_size) {
            return models::fail(
                "{} is of a run of {} ranks and {} of one of {}: name the traces "
                "of one run.",
                ranks[i - 1]->name, before.world_size, ranks[i]->name, run.world_size);
        }
        if (before.rank != run.rank) continue;
        return models::fail(
            "{} and {} are both of rank {}: name one trace of each rank. A trace has its rank if "
            "torch.distributed was initialized before the profiler started.",
            ranks[i - 1]->name, ranks[i]->name, run.rank);
    }
    return {};
}

void note_times(int64_t rank, const TimeExtent& range, const TimeExtent& first, Trace& joined) {
    add_diagnostic(joined, {.code = "ranks_apart",
                            .severity = Severity::kWarning,
                            .count = range.overlaps(first) ? 0 : 1,
                            .explanation = fmt::format(
                                "Rank {} ran at another time than the lowest rank: its clock is "
                                "wrong, or the traces are not of one run.",
                                rank)});
}

}  // namespace

Result<Trace> join_ranks(std::span<const JoinInput> inputs) {
    std::vector<const JoinInput*> ranks;
    for (const JoinInput& input : inputs) ranks.push_back(&input);
    std::ranges::stable_sort(ranks, {},
                             [](const JoinInput* rank) { return rank->trace.run().rank; });
    if (auto ok = check_ranks(ranks); !ok) return tl::unexpected(ok.error());
    Trace joined = ranks.front()->trace;
    name_after_rank(joined, joined.devices, 0, joined.run().rank);
    name_after_rank(joined, joined.threads, 0, joined.run().rank);
    name_start_states_after_rank(joined, joined.run().rank);
    const TimeExtent first = time_range_of_ops(joined);
    const int64_t start_unix_ns = joined.run().start_unix_ns;
    int64_t earliest_ns = 0;
    for (std::size_t i = 1; i < ranks.size(); ++i) {
        Trace other = ranks[i]->trace;
        const int64_t later_ns = other.run().start_unix_ns - start_unix_ns;
        earliest_ns = std::min(earliest_ns, later_ns);
        shift_times(other, later_ns);
        const TimeExtent range = time_range_of_ops(other);
        RankRows(joined, other, other.run().rank).add();
        add_notes(other, joined);
        note_times(other.run().rank, range, first, joined);
    }
    const auto num_ranks = std::ssize(ranks);
    add_diagnostic(
        joined,
        {.code = kJoinedRanks,
         .count = num_ranks,
         .explanation =
             "The trace holds this number of ranks. Steps and phases are of the lowest, and "
             "so are figures, unless the device of another one is chosen; clocks are as the "
             "machines of the ranks had them."});
    joined.runs.set<&Run::world_size>(Id<Run>(0), std::max(joined.run().world_size, num_ranks));
    if (earliest_ns < 0) shift_times(joined, -earliest_ns);
    return joined;
}

}  // namespace profiler
