// Goal: labels of any picture stand inside of it and clear of each other and of what it shows.
#include "profiler/view/place_labels.h"

#include <gtest/gtest.h>

#include <array>

namespace {

using namespace profiler;

constexpr Rect kFrame{0, 0, 200, 100};
constexpr LabelSize kSize{40, 10};

void expect_corner(const std::optional<Rect>& label, double x, double y) {
    ASSERT_TRUE(label);
    EXPECT_NEAR(label->x, x, 1e-9);
    EXPECT_NEAR(label->y, y, 1e-9);
    EXPECT_EQ(label->width, kSize.width);
    EXPECT_EQ(label->height, kSize.height);
}

TEST(PlaceLabels, PutsANameRightOfItsDotWhereThereIsRoom) {
    expect_corner(place_label(beside_dot({100, 50}, 6, kSize), {.frame = kFrame}), 106, 45);
    expect_corner(place_label(beside_dot({180, 50}, 6, kSize), {.frame = kFrame}), 134, 45);
}

TEST(PlaceLabels, LetsTheEarlierWishChooseFirst) {
    const std::array wishes{beside_dot({100, 50}, 6, kSize), beside_dot({100, 50}, 6, kSize)};
    const auto labels = place_labels(wishes, {.frame = kFrame});
    expect_corner(labels[0], 106, 45);
    expect_corner(labels[1], 54, 45);
}

TEST(PlaceLabels, KeepsLabelsClearOfEachOther) {
    std::vector<LabelWish> wishes;
    for (int i = 0; i < 40; ++i) wishes.push_back(beside_dot({60.0 + 2 * i, 50}, 6, kSize));
    const auto labels = place_labels(wishes, {.frame = kFrame});
    std::size_t placed = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (!labels[i]) continue;
        ++placed;
        EXPECT_TRUE(kFrame.contains(*labels[i]));
        for (std::size_t k = 0; k < i; ++k) {
            EXPECT_FALSE(labels[k] && labels[i]->overlaps(*labels[k])) << i << " on " << k;
        }
    }
    EXPECT_GE(placed, 6U);
    EXPECT_LT(placed, labels.size());
}

TEST(PlaceLabels, LeavesOutALabelWithoutRoom) {
    EXPECT_FALSE(place_label(beside_dot({20, 5}, 6, kSize), {.frame = {0, 0, 40, 10}}));
    EXPECT_FALSE(
        place_label(beside_dot({100, 50}, 6, kSize), {.frame = kFrame, .taken = {kFrame}}));
}

TEST(PlaceLabels, CoversDotsOnlyIfItMay) {
    LabelRoom room{.frame = kFrame};
    for (double x = 0; x < 200; x += 10) {
        for (double y = 0; y < 100; y += 5) room.dots.push_back(square_around({x, y}, 1));
    }
    // One place covers only a few of them.
    std::erase_if(room.dots, [](const Rect& dot) {
        return dot.overlaps({54, 45, 40, 10}) && dot.center_x() != 60;
    });
    LabelWish wish = beside_dot({100, 50}, 6, kSize);
    EXPECT_FALSE(place_label(wish, room));
    wish.may_cover_dots = true;
    expect_corner(place_label(wish, room), 54, 45);
    room.taken = {{54, 45, 1, 1}};
    EXPECT_NE(place_label(wish, room)->x, 54);
}

TEST(PlaceLabels, CrossesNoLine) {
    const LabelWish wish = beside_dot({100, 50}, 6, kSize);
    const auto label_with = [&](LabelLine line) {
        return place_label(wish, {.frame = kFrame, .lines = {line}});
    };
    expect_corner(label_with({{110, 0}, {140, 100}}), 54, 45);   // across the first place
    expect_corner(label_with({{120, 50}, {120, 51}}), 54, 45);   // wholly inside of it
    expect_corner(label_with({{110, 0}, {140, 40}}), 106, 45);   // ends above it
    expect_corner(label_with({{0, 45}, {200, 45}}), 106, 45);    // along its edge
    expect_corner(label_with({{150, 0}, {150, 100}}), 106, 45);  // beside it
}

TEST(PlaceLabels, StacksLabelsAboveAPointAndThenBelow) {
    const LabelWish wish = above_point({100, 34}, 4, kSize, kFrame);
    const auto labels = place_labels(std::vector(6, wish), {.frame = kFrame});
    expect_corner(labels[0], 80, 20);
    expect_corner(labels[1], 80, 10);
    expect_corner(labels[2], 80, 0);
    expect_corner(labels[3], 80, 38);
    expect_corner(labels[4], 80, 48);
    expect_corner(place_label(above_point({199, 34}, 4, kSize, kFrame), {.frame = kFrame}), 160,
                  20);
    expect_corner(place_label(above_point({0.1, 34}, 4, kSize, kFrame), {.frame = kFrame}), 0, 20);
}

TEST(PlaceLabels, PutsALabelOnTheHeightOfItsPoint) {
    const auto label = [](Point point) {
        return place_label(right_or_left(point, 8, kSize, kFrame), {.frame = kFrame});
    };
    expect_corner(label({100, 50}), 108, 45);
    expect_corner(label({190, 50}), 142, 45);
    expect_corner(label({100, 2}), 108, 0);
    expect_corner(label({100, 99}), 108, 90);
}

TEST(PlaceLabels, StartsANewRowWhereALabelWouldOverlap) {
    const std::array wishes{in_rows({10, 5}, 2, kSize, kFrame), in_rows({30, 5}, 2, kSize, kFrame),
                            in_rows({60, 5}, 2, kSize, kFrame), in_rows({62, 5}, 2, kSize, kFrame)};
    const auto labels = place_labels(wishes, {.frame = kFrame});
    expect_corner(labels[0], 10, 5);
    expect_corner(labels[1], 30, 15);
    expect_corner(labels[2], 60, 5);
    EXPECT_FALSE(labels[3]);
}

}  // namespace
