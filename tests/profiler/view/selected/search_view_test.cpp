#include "profiler/view/selected/search_view.h"

#include "profiler/trace/trace_notes.h"
#include "tests/support/loaded_step.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace {

using namespace profiler;
using Loaded = tests::LoadedStep;
using tests::TraceBuilder;

/// `calls` calls of "aten::mm" in layer 0, one of "aten::addmm", and a tensor of each.
Loaded make_step(int calls) {
    TraceBuilder b;
    const auto outer = b.module_path("encoder.layer.0", 0);
    const auto inner = b.module_path("encoder.layer.0.query", 0, outer);
    b.begin_step(PhaseKind::kForward);
    for (int i = 0; i < calls; ++i) {
        const auto mm = b.op("aten::mm", inner);
        b.allocate({.bytes = 100, .op = mm, .name = "scores"});
    }
    const auto addmm = b.op("aten::addmm", inner);
    b.allocate({.bytes = 7, .op = addmm, .name = "mm_out"});
    b.allocate({.bytes = 7, .op = addmm});  // without a name
    b.end_step();
    for (std::size_t i = 0; i < b.trace().ops.size(); ++i) {
        b.trace().ops.set<&Op::start_ns>(Id<Op>(i), static_cast<int64_t>(i) * 10'000);
        b.trace().ops.set<&Op::end_ns>(Id<Op>(i), static_cast<int64_t>(i) * 10'000 + 2000);
    }
    return Loaded(b.finish());
}

std::shared_ptr<const SearchIndex> index_of(const Steps& steps) {
    return std::make_shared<const SearchIndex>(build_search_index(steps));
}

const SearchGroup& group(const SearchView& view, SearchKind kind) {
    const auto found = std::ranges::find(view.groups, kind, &SearchGroup::kind);
    if (found == view.groups.end()) throw std::out_of_range("no group of this kind");
    return *found;
}

TEST(Search, RowsOfOneNameAreOneEntryWithItsRowsInOrder) {
    const Loaded step = make_step(3);
    const SearchView view = search(index_of({&step.index}), "aten::mm");
    const SearchGroup& ops = group(view, SearchKind::kOp);
    ASSERT_EQ(ops.hits.size(), 1U);
    EXPECT_EQ(ops.hits[0].label, "aten::mm");
    EXPECT_EQ(ops.hits[0].count, "×3 in A");
    EXPECT_EQ(ops.hits[0].amount, "6.00 µs");
    const SearchName& name = view.index->names[ops.hits[0].name];
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(view.index->place(name, i).row, static_cast<int32_t>(i));
        EXPECT_EQ(view.index->place(name, i).source, 0U);
    }
    EXPECT_EQ(view.index->place(name, 3).row, -1);
}

TEST(Search, FindsTheBlocksOfALineOfCodeAndOfTheUsersMetadata) {
    TraceBuilder b;
    Trace& trace = b.trace();
    const auto frame = [&](std::string_view function, std::string_view file, int64_t line) {
        return trace.frames.append({.function = trace.strings.intern(function),
                                    .file = trace.strings.intern(file),
                                    .line = line});
    };
    const auto mark = frame("step 3", kUserMetadataFile, 0);
    const auto user = trace.stacks.append({.frame = mark});
    const auto forward = trace.stacks.append({.frame = frame("forward", "app/model.py", 54)});
    const auto line = trace.stacks.append({.parent = forward, .frame = mark});
    b.allocate({.bytes = 100, .name = "x"});
    b.allocate({.bytes = 28, .name = "y"});
    b.allocate({.bytes = 7, .name = "z"});
    Loaded step(b.finish());
    step.trace.allocations.set<&Allocation::stack>(Id<Allocation>(0), line);
    step.trace.allocations.set<&Allocation::stack>(Id<Allocation>(1), user);
    const auto index = index_of({&step.index});
    for (const auto& [query, name, count, amount] :
         {std::tuple("model.py", "app/model.py:54 forward", "×1 in A", "100 B"),
          std::tuple("step 3", "<user_metadata> step 3", "×2 in A", "128 B")}) {
        const SearchView view = search(index, query);
        const SearchHit& site = group(view, SearchKind::kSite).hits[0];
        EXPECT_EQ(site.label, name);
        EXPECT_EQ(site.count, count);
        EXPECT_EQ(site.amount, amount);
        EXPECT_EQ(view.index->place(view.index->names[site.name], 0).row, 0);
    }
}

TEST(Search, TheRowsOfAComeBeforeThoseOfB) {
    const Loaded a = make_step(1), b = make_step(2);
    const SearchView view = search(index_of({&a.index, &b.index}), "scores");
    ASSERT_EQ(view.groups.size(), 1U);
    const SearchHit& hit = view.groups[0].hits[0];
    EXPECT_EQ(view.groups[0].kind, SearchKind::kTensor);
    EXPECT_EQ(hit.count, "×1 in A, ×2 in B");
    EXPECT_EQ(hit.amount, "A 100 B, B 200 B");
    const SearchView same = search(index_of({&a.index, &a.index}), "scores");
    EXPECT_EQ(same.groups[0].hits[0].amount, "100 B in each");
    const SearchName& name = view.index->names[hit.name];
    EXPECT_EQ(view.index->place(name, 0).source, 0U);
    EXPECT_EQ(view.index->place(name, 1).source, 1U);
    EXPECT_EQ(view.index->place(name, 2).source, 1U);
}

TEST(Search, GoesFirstToTheStepThatTheLedgerLists) {
    TraceBuilder b;
    for (const int calls : {3, 2}) {
        b.begin_step(PhaseKind::kForward);
        for (int i = 0; i < calls; ++i) {
            b.allocate({.bytes = 8, .op = b.op("aten::mm"), .name = "scores"});
        }
        b.end_step();
        b.wait(1000);
    }
    const Loaded two(b.finish());
    const Loaded none = make_step(0);
    for (const Steps& steps :
         {Steps{&two.index}, Steps{&none.index, &two.index}, Steps{&two.index, &two.index}}) {
        const auto index = index_of(steps);
        for (const char* name : {"aten::mm", "scores"}) {
            const SearchView view = search(index, name);
            EXPECT_EQ(index->names[view.groups[0].hits[0].name].shown_place, 3U) << name;
        }
    }
    // Of one step the first place.
    const Loaded step = make_step(2);
    const auto index = index_of({&step.index});
    EXPECT_EQ(index->names[0].shown_place, 0U);
}

TEST(Search, StartsOfWordsComeBeforeTheirInside) {
    const Loaded step = make_step(1);
    const SearchView view = search(index_of({&step.index}), "MM");
    const SearchGroup& ops = group(view, SearchKind::kOp);
    ASSERT_EQ(ops.hits.size(), 2U);
    EXPECT_EQ(ops.hits[0].label, "aten::mm");  // "mm" starts a word; in "addmm" it does not
    EXPECT_EQ(ops.hits[1].label, "aten::addmm");
    EXPECT_EQ(view.groups[0].kind, SearchKind::kTensor);  // "mm_out" starts with it
}

TEST(Search, EveryWordMustOccurInAnyOrder) {
    const Loaded step = make_step(1);
    const auto index = index_of({&step.index});
    EXPECT_NO_THROW(group(search(index, "query layer"), SearchKind::kModule));
    EXPECT_TRUE(search(index, "query nothing").groups.empty());
    EXPECT_TRUE(search(index, "").groups.empty());
    EXPECT_TRUE(search(index, "  ").groups.empty());
}

TEST(Search, ModulesTakeTheTimeOfTheModulesInThem) {
    const Loaded step = make_step(2);
    const SearchView view = search(index_of({&step.index}), "encoder");
    const SearchGroup& modules = group(view, SearchKind::kModule);
    ASSERT_EQ(modules.hits.size(), 2U);
    EXPECT_EQ(modules.hits[0].label, "encoder.layer.0");
    EXPECT_EQ(modules.hits[0].amount, "6.00 µs");
    EXPECT_EQ(modules.hits[1].amount, "6.00 µs");
}

TEST(Search, LayersAreFoundByTheirNumber) {
    const Loaded step = make_step(1);
    const SearchView view = search(index_of({&step.index}), "layer 0");
    const SearchGroup& layers = group(view, SearchKind::kLayer);
    const SearchName& name = view.index->names[layers.hits[0].name];
    EXPECT_EQ(view.index->place(name, 0).row, 0);
}

TEST(Search, NamesOfDamagedFilesAreCutAndCleaned) {
    TraceBuilder b;
    const auto cycle = b.module_path("a");
    b.trace().module_paths.set<&ModulePath::parent>(cycle, cycle);
    b.trace().module_paths.set<&ModulePath::layer>(cycle, int64_t{1} << 60);
    b.begin_step(PhaseKind::kForward);
    b.op("x\n\ty\x01z", cycle);
    b.op("", cycle);
    b.op("   ", cycle);
    std::string long_name = "start";
    while (long_name.size() < 5000) long_name += "µ";
    b.op(long_name, cycle);
    const auto backwards = b.op("backwards", cycle);
    b.trace().ops.set<&Op::start_ns>(backwards, 10);
    b.trace().ops.set<&Op::end_ns>(backwards, -10);
    const Loaded step(b.finish());
    const auto index = index_of({&step.index});
    for (const SearchName& name : index->names) {
        EXPECT_FALSE(name.name.empty());
        EXPECT_LE(name.name.size(), 1010U);
        EXPECT_EQ(name.name.find_first_of("\n\t\x01"), std::string::npos);
        EXPECT_NE(name.kind, SearchKind::kLayer);
    }
    EXPECT_EQ(search(index, "x y").groups.at(0).hits.at(0).label, "x  y z");
    EXPECT_EQ(search(index, "backwards").groups.at(0).hits.at(0).amount, "");
    EXPECT_EQ(search(index, "startµ").groups.size(), 1U);
}

TEST(Search, ShowsTheBestAndCountsTheRest) {
    TraceBuilder b;
    b.begin_step(PhaseKind::kForward);
    for (int i = 0; i < 40; ++i) b.op("kernel_" + std::to_string(i));
    const Loaded step(b.finish());
    const SearchView view = search(index_of({&step.index}), "kernel");
    ASSERT_EQ(view.groups.size(), 1U);
    EXPECT_EQ(view.groups[0].hits.size(), SearchView::kMostHits);
    EXPECT_EQ(view.groups[0].left_out, 40 - static_cast<int64_t>(SearchView::kMostHits));
}

TEST(Search, FindsTheTensorsOfATrainingStep) {
    const Loaded step(tests::make_synthetic_trace({.num_allocations = 20'000}));
    const auto index = index_of({&step.index});
    EXPECT_LT(index->names.size(), 2000U);  // names, not rows
    std::size_t places = 0;
    for (const SearchName& name : index->names) places += name.place_count();
    EXPECT_EQ(places, index->rows.size());
}

}  // namespace
