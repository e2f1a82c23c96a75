/// Joins the traces of two ranks. Each is that of a synthetic run, with its own rank and clock.
#include "profiler/formats/join/joined_trace.h"

#include "profiler/formats/chrome/chrome_writer.h"
#include "profiler/formats/parts/memory_actions.h"
#include "profiler/formats/parts/shift_times.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/trace_notes.h"
#include "tests/profiler/trace/temporary_folder.h"
#include "tests/support/synthetic_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace profiler {
namespace {

using testing::HasSubstr;

constexpr int64_t kRankZeroStart = 1'783'874'422'287'973'000;

/// As the profiler of a rank writes it.
Trace rank_trace(int64_t rank, int64_t starts_later_ns) {
    Trace trace = tests::make_synthetic_trace({.num_allocations = 3'000});
    const Id<Run> run(0);
    trace.runs.set<&Run::start_unix_ns>(run, kRankZeroStart + starts_later_ns);
    trace.runs.set<&Run::rank>(run, rank);
    trace.runs.set<&Run::world_size>(run, 2);
    for (std::size_t i = 0; i < trace.devices.size(); ++i) {
        const std::string name = "cuda:" + std::to_string(rank);
        trace.devices.set<&Device::name>(Id<Device>(i), trace.strings.intern(name));
    }
    trace.collectives.append(
        {.op = Id<Op>(20),
         .communicator = trace.communicators.append({.name = trace.strings.intern("0")}),
         .kind = CollectiveKind::kAllReduce});
    const tests::TemporaryFolder folder;
    const auto path = folder / "rank.pt.trace.json";
    EXPECT_TRUE(write_chrome_trace(trace, path).has_value());
    auto read = open_trace(path);
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
    return read ? std::move(*read) : Trace();
}

std::multiset<std::string> names_of_devices(const Trace& trace) {
    std::multiset<std::string> names;
    for (const StringId name : trace.devices.column<&Device::name>()) {
        names.emplace(trace.text(name));
    }
    return names;
}

/// The name, module and phase of `count` ops, and the name of the op that called each.
std::vector<std::string> ops_of(const Trace& trace, std::size_t first, std::size_t count) {
    std::vector<std::string> ops;
    for (std::size_t i = first; i < first + count; ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        std::string text(trace.text(op.name));
        if (op.module_path.valid()) {
            text += " in ";
            text += trace.text(trace.module_paths.get<&ModulePath::path>(op.module_path));
        }
        if (op.phase.valid()) text += " phase " + std::to_string(op.phase.value);
        if (op.parent.valid()) {
            text += " of ";
            text += trace.text(trace.ops.get<&Op::name>(op.parent));
        }
        ops.push_back(text);
    }
    return ops;
}

TEST(JoinRanks, HoldsTheOpsKernelsAndBlocksOfEachOnOneClock) {
    const Trace zero = rank_trace(0, 0), one = rank_trace(1, -5'000);
    const auto joined = join_ranks(std::vector<JoinInput>{{one, "one"}, {zero, "zero"}});
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    EXPECT_EQ(joined->run().rank, 0);
    EXPECT_EQ(joined->run().world_size, 2);
    EXPECT_EQ(names_of_devices(*joined),
              (std::multiset<std::string>{"cuda:0 of rank 0", "cuda:1 of rank 1"}));
    EXPECT_EQ(joined->ops.size(), zero.ops.size() + one.ops.size());
    EXPECT_EQ(joined->allocations.size(), zero.allocations.size() + one.allocations.size());
    EXPECT_EQ(joined->kernels.size(), zero.kernels.size() + one.kernels.size());
    EXPECT_EQ(joined->module_paths.size(), zero.module_paths.size());
    ASSERT_EQ(joined->collectives.size(), 2U);
    const Collective other = joined->collectives[Id<Collective>(1)];
    EXPECT_EQ(other.op.index(), zero.ops.size() + one.collectives[Id<Collective>(0)].op.index());
    EXPECT_EQ(other.communicator, Id<Communicator>(1));
    EXPECT_EQ(joined->steps.size(), zero.steps.size());
    EXPECT_EQ(ops_of(*joined, 0, zero.ops.size()), ops_of(zero, 0, zero.ops.size()));
    EXPECT_EQ(ops_of(*joined, zero.ops.size(), one.ops.size()), ops_of(one, 0, one.ops.size()));
    const auto start = [](const Trace& trace, std::size_t op) {
        return trace.run().start_unix_ns + trace.ops.get<&Op::start_ns>(Id<Op>(op));
    };
    EXPECT_EQ(start(*joined, 0), start(zero, 0));
    EXPECT_EQ(start(*joined, zero.ops.size()), start(one, 0));
    EXPECT_GE(joined->ops.get<&Op::start_ns>(Id<Op>(zero.ops.size())), 0);
}

/// The host of each rank is none of the GPUs that figures are of.
TEST(JoinRanks, KnowsTheHostsOfItsRanks) {
    std::vector<Trace> ranks;
    for (const int64_t rank : {0, 1}) {
        Trace trace = rank_trace(rank, 0);
        trace.devices.append({.name = trace.strings.intern("cpu")});
        ranks.push_back(std::move(trace));
    }
    const auto joined = join_ranks(std::vector<JoinInput>{{ranks[0], "zero"}, {ranks[1], "one"}});
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    std::vector<bool> hosts;
    for (std::size_t i = 0; i < joined->devices.size(); ++i) {
        hosts.push_back(is_host(*joined, Id<Device>(i)));
    }
    EXPECT_EQ(hosts, (std::vector<bool>{false, true, false, true}));
}

/// What a reader noted of rank 1 must not get lost, nor count as a note on rank 0.
TEST(JoinRanks, KeepsTheNotesOfEachRank) {
    const Trace zero = rank_trace(0, 0);
    Trace one = rank_trace(1, 0);
    add_diagnostic(one, {.code = "ended_early",
                         .severity = Severity::kWarning,
                         .explanation = "The list has no end."});
    set_diagnostic(one, {.code = kStartState, .count = 7, .explanation = "At the start."});
    const auto joined = join_ranks(std::vector<JoinInput>{{zero, "zero"}, {one, "one"}});
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    std::map<std::string, std::string> notes;
    for (std::size_t i = 0; i < joined->diagnostics.size(); ++i) {
        const Diagnostic note = joined->diagnostics[Id<Diagnostic>(i)];
        notes.emplace(joined->text(note.code), joined->text(note.explanation));
    }
    EXPECT_EQ(notes["ended_early of rank 1"], "Rank 1: The list has no end.");
    EXPECT_EQ(notes.count("ended_early"), 0u);
    EXPECT_EQ(num_start_events(*joined, Id<Device>(0)), num_start_events(zero));
    EXPECT_EQ(num_start_events(*joined, Id<Device>(1)), 7);
}

/// Each rank may see its GPU as cuda:0. In a snapshot or a Chrome trace they must stay apart.
TEST(JoinRanks, NumbersGpusOfOneName) {
    std::vector<Trace> ranks;
    for (const int64_t rank : {0, 1}) {
        Trace trace = rank_trace(rank, 0);
        trace.devices.set<&Device::name>(Id<Device>(0), trace.strings.intern("cuda:0"));
        ranks.push_back(std::move(trace));
    }
    const auto joined = join_ranks(std::vector<JoinInput>{{ranks[0], "zero"}, {ranks[1], "one"}});
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    EXPECT_EQ(device_numbers(*joined), (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(device_numbers(ranks[1]), (std::vector<int64_t>{0}));
    const auto recordings = recordings_of(*joined);
    ASSERT_EQ(recordings.size(), 2u);
    EXPECT_EQ(recordings[1].device, 1);
}

TEST(JoinRanks, RefusesARankThatCannotBe) {
    const Trace zero = rank_trace(0, 0), five = rank_trace(5, 0);
    const auto joined =
        join_ranks(std::vector<JoinInput>{{zero, "zero.json"}, {five, "five.json"}});
    ASSERT_FALSE(joined.has_value());
    EXPECT_THAT(joined.error().message, HasSubstr("five.json says that it is of rank 5 of 2"));
}

TEST(JoinRanks, RefusesTwoTracesOfOneRankAndOtherFiles) {
    const Trace zero = rank_trace(0, 0);
    const auto twice = join_ranks(std::vector<JoinInput>{{zero, "a.json"}, {zero, "b.json"}});
    ASSERT_FALSE(twice.has_value());
    EXPECT_THAT(twice.error().message, HasSubstr("a.json and b.json are both of rank 0"));
    const Trace later = rank_trace(1, kMostNanosecondsApart + 1'000'000);
    const auto apart = join_ranks(std::vector<JoinInput>{{zero, "a.json"}, {later, "b.json"}});
    ASSERT_FALSE(apart.has_value());
    EXPECT_THAT(apart.error().message, HasSubstr("began more than 52 days apart"));
    Trace wider = rank_trace(1, 0);
    wider.runs.set<&profiler::Run::world_size>(Id<profiler::Run>(0), 64);
    const auto mixed = join_ranks(std::vector<JoinInput>{{zero, "a.json"}, {wider, "b.json"}});
    ASSERT_FALSE(mixed.has_value());
    EXPECT_THAT(mixed.error().message, HasSubstr("of a run of 2 ranks and b.json of one of 64"));
    const Trace capture = tests::make_synthetic_trace({.num_allocations = 100});
    const auto other = join_ranks(std::vector<JoinInput>{{capture, "c.tscope"}, {zero, "b.json"}});
    ASSERT_FALSE(other.has_value());
    EXPECT_THAT(other.error().message,
                HasSubstr("c.tscope is not a trace of the PyTorch profiler"));
}

}  // namespace
}  // namespace profiler
