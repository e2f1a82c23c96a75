#include "profiler/analysis/step/origin.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace {

using namespace profiler;

TEST(LayerPath, OfAModuleIsTheOutermostModuleOfItsLayer) {
    tests::TraceBuilder b;
    const auto decoder = b.module_path("decoder");
    const auto list = b.module_path("decoder.block", -1, decoder);
    const auto block = b.module_path("decoder.block.0", 6, list);  // after an encoder of six
    const auto part = b.module_path("decoder.block.0.layer.1", 6, block);
    const auto next = b.module_path("decoder.block.1", 7, list);
    EXPECT_EQ(layer_path_of(b.trace(), part), "decoder.block.0");
    EXPECT_EQ(layer_path_of(b.trace(), block), "decoder.block.0");
    EXPECT_EQ(layer_path_of(b.trace(), next), "decoder.block.1");
    EXPECT_EQ(layer_path_of(b.trace(), list), "");
    EXPECT_EQ(layer_path_of(b.trace(), {}), "");
}

TEST(LayerPath, SplitsAPathAroundItsLayer) {
    const auto [layer, inside] = split_layer_path("layer2.0.conv1", "layer2.0");
    EXPECT_EQ(layer, "layer2.0");
    EXPECT_EQ(inside, "conv1");
    EXPECT_EQ(split_layer_path("layer2.0", "layer2.0").layer, "layer2.0");
    EXPECT_EQ(split_layer_path("layer2.0", "layer2.0").inside, "");
    EXPECT_EQ(split_layer_path("cls.decoder", "").layer, "cls");
    EXPECT_EQ(split_layer_path("cls.decoder", "").inside, "decoder");
    EXPECT_EQ(split_layer_path("layer2.01", "layer2.0").layer, "layer2.01");
}

TEST(LayerPath, NamesTheSameModuleOfAllLayersOfAStack) {
    EXPECT_EQ(any_layer_path("decoder.block.1.layer.0.norm", "decoder.block.1"),
              "decoder.block.*.layer.0.norm");
    EXPECT_EQ(any_layer_path("layer2.0", "layer2.0"), "layer2.*");
    EXPECT_EQ(any_layer_path("embeddings.norm", ""), "embeddings.norm");
}

}  // namespace
