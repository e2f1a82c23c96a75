#include "profiler/analysis/step/breakdown.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace {

using namespace tests;

Trace make_layered_trace() {
    TraceBuilder b;
    const auto encoder = b.module_path("encoder");
    const auto embeddings = b.module_path("embeddings");
    const auto norm = b.module_path("embeddings.norm", -1, embeddings);
    const auto layer0 = b.module_path("encoder.layer.0", 0, encoder);
    const auto dense0 = b.module_path("encoder.layer.0.output.dense", 0, layer0);
    const auto layer1 = b.module_path("encoder.layer.1", 1, encoder);
    b.allocate({.bytes = 64,
                .category = Category::kParameter,
                .name = "encoder.layer.0.output.dense.weight"});
    b.allocate({.bytes = 64,
                .category = Category::kParameter,
                .name = "encoder.layer.1.output.dense.weight"});
    b.begin_step();
    b.allocate(
        {.bytes = 5, .category = Category::kActivation, .op = b.op("aten::embedding", norm)});
    b.allocate({.bytes = 1,
                .category = Category::kActivation,
                .op = b.op("aten::addmm", dense0),
                .name = "context"});
    b.allocate({.bytes = 2,
                .category = Category::kActivation,
                .op = b.op("aten::addmm", layer1),
                .name = "context"});
    b.allocate({.bytes = 4, .category = Category::kTemporary, .op = b.op("aten::bmm", layer1)});
    b.allocate({.bytes = 3});
    return b.finish();
}

std::map<std::string, int64_t> sizes(GroupBy by) {
    const Trace trace = make_layered_trace();
    std::map<std::string, int64_t> sizes;
    for (const auto& row : break_down(trace, find_peak(trace), by))
        sizes[row.name] = row.size_bytes;
    return sizes;
}

using Sizes = std::map<std::string, int64_t>;

TEST(BreakDown, ByClass) {
    EXPECT_EQ(sizes(GroupBy::kClass),
              (Sizes{{"parameter", 128}, {"activation", 8}, {"temporary", 7}}));
}

TEST(BreakDown, ByLayerFindsParametersByTheirNames) {
    EXPECT_EQ(sizes(GroupBy::kLayer), (Sizes{{"encoder.layer.0", 65},
                                             {"encoder.layer.1", 70},
                                             {"embeddings", 5},
                                             {"outside the model", 3}}));
}

TEST(BreakDown, ByOp) {
    EXPECT_EQ(sizes(GroupBy::kOp), (Sizes{{"outside of ops", 131},
                                          {"aten::embedding", 5},
                                          {"aten::addmm", 3},
                                          {"aten::bmm", 4}}));
}

TEST(BreakDown, ByTensorGathersTheSameTensorOfAllLayers) {
    EXPECT_EQ(sizes(GroupBy::kTensor), (Sizes{{"output.dense.weight", 128},
                                              {"context", 3},
                                              {"unnamed, aten::embedding", 5},
                                              {"unnamed, aten::bmm", 4},
                                              {"unnamed, outside of ops", 3}}));
}

TEST(BreakDown, SumsToThePeakWhateverTheGroup) {
    const Trace trace = make_layered_trace();
    const PeakReport peak = find_peak(trace);
    for (const std::string_view name : kGroupByNames) {
        const GroupBy by = *find_group_by(name);
        int64_t total = 0, count = 0;
        for (const auto& row : break_down(trace, peak, by)) {
            total += row.size_bytes;
            count += row.count;
        }
        EXPECT_EQ(total, peak.allocated_bytes);
        EXPECT_EQ(count, 7);
    }
}

TEST(BreakDown, ByModuleGathersTheSameModuleOfAllLayers) {
    EXPECT_EQ(sizes(GroupBy::kModule), (Sizes{{"encoder.layer.*.output.dense", 65},
                                              {"encoder.layer.*", 70},
                                              {"embeddings.norm", 5},
                                              {"outside the model", 3}}));
}

/// Without a recorded class the last name of the path stands for it.
TEST(BreakDown, ByModuleTypeGathersModulesOfOneClass) {
    TraceBuilder b;
    const auto drop = b.module_path("stages.0.drop1", 0);
    const auto other = b.module_path("stages.1.drop2", 1);
    const auto plain = b.module_path("stages.1.fc1", 1);
    for (const auto module : {drop, other}) {
        b.trace().module_paths.set<&ModulePath::type>(module, b.text("Dropout"));
    }
    b.begin_step();
    for (const auto module : {drop, other, plain}) {
        b.allocate({.bytes = 8, .op = b.op("aten::mul", module)});
    }
    const Trace trace = b.finish();
    Sizes found;
    for (const auto& row : break_down(trace, find_peak(trace), GroupBy::kModuleType)) {
        found[row.name] = row.size_bytes;
    }
    EXPECT_EQ(found, (Sizes{{"Dropout", 16}, {"fc*", 8}}));
}

TEST(BreakDown, OfModulesKeepsNumbersThatTellPartsApart) {
    TraceBuilder b;
    const auto layer = b.module_path("layers.1", 1);
    const auto first = b.module_path("layers.1.mlp.0", 1, layer);
    const auto conv = b.module_path("layers.1.conv2.drop", 1, layer);
    const auto outside = b.module_path("head.2");
    b.begin_step();
    for (const auto module : {first, conv, outside}) {
        b.allocate({.bytes = 8, .op = b.op("aten::mul", module)});
    }
    const Trace trace = b.finish();
    std::set<std::string> names;
    for (const auto& row : break_down(trace, find_peak(trace), GroupBy::kModule)) {
        names.insert(row.name);
    }
    EXPECT_EQ(names, (std::set<std::string>{"layers.*.mlp.0", "layers.*.conv*.drop", "head.2"}));
}

/// What is saved counts for the module and the op that saved it first.
TEST(BreakDown, OfTheLedgerSumsToItsTotal) {
    TraceBuilder b;
    const auto norm = b.module_path("layers.0.norm", 0);
    const auto fc = b.module_path("layers.0.fc", 0);
    b.begin_step(PhaseKind::kForward);
    const auto save = [&](int64_t bytes, Id<ModulePath> module, std::string_view name) {
        const auto op = b.op(name, module);
        b.save(b.allocate({.bytes = bytes, .category = Category::kActivation, .op = op}), op);
    };
    save(10, norm, "aten::native_layer_norm");
    save(30, fc, "aten::addmm");
    save(20, norm, "aten::native_layer_norm");
    b.begin_phase(PhaseKind::kBackward);
    const Trace trace = b.finish();
    const Ledger ledger = build_ledger(trace);
    for (const std::string_view name : kGroupByNames) {
        int64_t total = 0;
        for (const auto& row : break_down(trace, ledger, *find_group_by(name))) {
            total += row.size_bytes;
        }
        EXPECT_EQ(total, 60) << name;
    }
    const auto by_op = break_down(trace, ledger, GroupBy::kOp);
    ASSERT_EQ(by_op.size(), 2U);
    EXPECT_EQ(by_op[0].count, 2);
    EXPECT_EQ(by_op[0].name, "aten::native_layer_norm");
}

TEST(BreakDown, ListsTheLargestFirst) {
    const Trace trace = make_layered_trace();
    std::vector<std::string> names;
    for (const auto& row : break_down(trace, find_peak(trace), GroupBy::kLayer))
        names.push_back(row.name);
    EXPECT_EQ(names, (std::vector<std::string>{"encoder.layer.1", "encoder.layer.0", "embeddings",
                                               "outside the model"}));
}

/// Names that a damaged or foreign file may give: a tensor called like its layer, a layer without a
/// path. What stands in front of the name is cut off only where it is the layer.
TEST(BreakDown, ByTensorKeepsNamesThatAreNotInsideTheirLayer) {
    TraceBuilder b;
    const auto outer = b.module_path("layer.x", 0);
    b.module_path("layer", 0, outer);  // its place is "layer.x"
    b.module_path("", 1);
    b.begin_step();
    for (const char* name : {"layer.x", "layer.x.", "layer.xy.w", "layer.x.w", ".w", "."}) {
        b.allocate({.bytes = 8, .name = name});
    }
    const Trace trace = b.finish();
    std::set<std::string> names;
    for (const auto& row : break_down(trace, find_peak(trace), GroupBy::kTensor))
        names.insert(row.name);
    EXPECT_EQ(names, (std::set<std::string>{"layer.x", "layer.x.", "layer.xy.w", "w", ".w", "."}));
}

TEST(FindGroupBy, KnowsItsNamesOnly) {
    EXPECT_EQ(find_group_by("layer"), GroupBy::kLayer);
    EXPECT_EQ(find_group_by("line"), GroupBy::kLine);
    EXPECT_FALSE(find_group_by(""));
}

}  // namespace
