#include "profiler/layouts/layout_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// What the worker sends is checked: the search relies on it.
namespace {

using namespace profiler;
using nlohmann::json;

LayoutGraph small_graph() {
    return {.device_name = "a processor",
            .num_rounds = 3,
            .tensors =
                {{.name = "x", .dimensions = "ab", .orders = {"ab", "ba"}, .copy_ns = {0, 2, 3, 0}},
                 {.name = "w", .dimensions = "ab", .role = LayoutRole::kWeight, .orders = {"ab"}}},
            .ops = {{.name = "op",
                     .op_class = OpClass::kContraction,
                     .is_backward = true,
                     .tensors = {0, 1},
                     .num_reads = 1,
                     .configurations = {{{1, 0}, 4.5}}}}};
}

TEST(LayoutGraph, IsReadAsItWasWritten) {
    const auto graph = layout_graph_from_json(to_json(small_graph()));
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(to_json(*graph), to_json(small_graph()));
    EXPECT_EQ(graph->tensors[0].copy_time_ns(0, 1), 2);
    EXPECT_EQ(graph->tensors[0].copy_time_ns(1, 1), 0);
    EXPECT_LT(graph->tensors[1].copy_time_ns(0, 1), 0) << "no copies of a weight";
    EXPECT_EQ(graph->ops[0].best_ns(), 4.5);
}

TEST(LayoutGraph, RefusesWhatASearchCannotUse) {
    const auto refuses = [](const auto& damage) {
        json document = to_json(small_graph());
        damage(document);
        const auto graph = layout_graph_from_json(document);
        ASSERT_FALSE(graph) << document.dump();
        EXPECT_THAT(graph.error().message, testing::HasSubstr("cannot be read"));
    };
    refuses([](json& d) { d.erase("ops"); });
    refuses([](json& d) { d["ops"][0]["tensors"][1] = 7; });
    refuses([](json& d) { d["ops"][0]["configurations"][0]["orders"][0] = 2; });
    refuses([](json& d) { d["ops"][0]["configurations"][0]["orders"] = {0}; });
    refuses([](json& d) { d["ops"][0]["configurations"][0]["time_ns"] = -1; });
    refuses([](json& d) { d["ops"][0]["configurations"] = json::array(); });
    refuses([](json& d) { d["ops"][0]["num_reads"] = 3; });
    refuses([](json& d) { d["ops"][0]["class"] = 9; });
    refuses([](json& d) { d["tensors"][0]["copy_ns"] = {1}; });
    refuses([](json& d) { d["tensors"][0]["role"] = 5; });
    refuses([](json& d) { d["tensors"][0]["orders"] = json::array(); });
}

}  // namespace
