#include "models/config/switches.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace models {
namespace {

/// A table that lacks a row or has two in the wrong order does not compile in switches.h, because
/// of what these tables show.
constexpr Switch<LayerNorm, 1> kLacksARow{
    .name = "layer_norm",
    .former_name = {},
    .member = &Recipe::layer_norm,
    .is_for_step = false,
    .rows = {{{LayerNorm::kOriginal, {.name = "original", .phrase = {}}}}}};
static_assert(!is_complete(kLacksARow));
constexpr Switch<LayerNorm, 2> kInTheWrongOrder{
    .name = "layer_norm",
    .former_name = {},
    .member = &Recipe::layer_norm,
    .is_for_step = false,
    .rows = {{{LayerNorm::kFromOutput, {.name = "from_output", .phrase = {}}},
              {LayerNorm::kOriginal, {.name = "original", .phrase = {}}}}}};
static_assert(!is_complete(kInTheWrongOrder));

TEST(Switches, EveryValueIsReadAndWrittenByItsName) {
    for_each_switch([](const auto& table) {
        for (const auto& [value, is] : table.rows) {
            Recipe recipe;
            recipe.*table.member = value;
            const std::string item = std::string(table.name) + "=" + std::string(is.name);
            EXPECT_EQ(*parse_recipe(item), recipe) << item;
            EXPECT_EQ(to_text(recipe), recipe == Recipe{} ? "original" : item);
            EXPECT_EQ(name_of(value), is.name);
        }
    });
}

TEST(Switches, EveryValueHasItsOwnNameAndWords) {
    std::set<std::string_view> phrases;
    for_each_switch([&](const auto& table) {
        std::set<std::string_view> names;
        for (const auto& row : table.rows) {
            EXPECT_TRUE(names.insert(row.is.name).second) << row.is.name;
            EXPECT_TRUE(names.insert(row.is.former_name).second || row.is.former_name.empty());
            EXPECT_TRUE(phrases.insert(row.is.phrase).second) << row.is.phrase;
            EXPECT_NE(row.is.phrase, "");
        }
    });
}

/// A layer's closed form is the sum of what its values save.
TEST(Switches, EveryOpSavesTensors) {
    const auto check = [](const auto& table) {
        for (const auto& row : table.rows) {
            EXPECT_FALSE(row.is.saves.empty()) << row.is.name;
        }
    };
    check(kGeluSwitch);
    check(kLayerNormSwitch);
    check(kAttentionSwitch);
    check(kMasksSwitch);
}

TEST(Switches, TheSearchChoosesOnlyWhatIsImplemented) {
    for_each_switch([](const auto& table) {
        for (const auto& row : table.rows) {
            EXPECT_TRUE(row.is.search == Search::kNever || row.is.runs_on != RunsOn::kNowhere)
                << row.is.name;
        }
    });
    EXPECT_EQ(kGeluSwitch[Gelu::kPython].search, Search::kNever);
    EXPECT_EQ(kGeluSwitch[Gelu::kInPlace].search, Search::kAlways);
    EXPECT_EQ(kQkvSwitch[Qkv::kFused].search, Search::kOnBest);
}

}  // namespace
}  // namespace models
