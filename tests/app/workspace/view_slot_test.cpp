#include "app/workspace/view_slot.h"

#include "tests/app/workspace/waiting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace {

app::DocumentPtr empty_document() {
    profiler::Trace trace;
    trace.runs.append({});
    return app::make_document("empty.tscope",
                              std::make_shared<const profiler::Trace>(std::move(trace)));
}

/// What the slot of these tests makes its request from.
struct SlotState {
    std::optional<int> number;
    app::DocumentPtr document;
};
using NumberSlot = app::ViewSlot<SlotState, int, std::string>;

std::optional<app::ViewOrder<int>> order_number(const SlotState& state) {
    if (!state.number) return std::nullopt;
    return app::ViewOrder<int>{*state.number, {state.document}};
}

void settle(NumberSlot& slot, const SlotState& state) {
    tests::wait_for([&] {
        slot.update(state);
        return slot.settled(state);
    });
}

TEST(ViewSlot, KeepsTheViewUntilTheNextOneOfTheSameDocumentsIsReady) {
    tests::Gate gate;
    NumberSlot slot("Counting", order_number, [&](int number) -> models::Result<std::string> {
        if (number == 2) gate.wait();
        return std::to_string(number);
    });
    SlotState state{1, empty_document()};
    EXPECT_EQ(slot.view(), nullptr);
    settle(slot, state);
    EXPECT_EQ(*slot.view(), "1");
    state.number = 2;
    EXPECT_FALSE(slot.update(state));
    EXPECT_FALSE(slot.settled(state));
    EXPECT_EQ(*slot.view(), "1");
    gate.open();
    settle(slot, state);
    EXPECT_EQ(*slot.view(), "2");
}

TEST(ViewSlot, ShowsAtOnceWhatWasMadeAhead) {
    std::atomic<int> builds = 0;
    NumberSlot slot("Counting", order_number, [&](int number) {
        ++builds;
        return std::to_string(number);
    });
    SlotState state{1, empty_document()};
    settle(slot, state);
    const SlotState next{2, empty_document()};
    const auto make = slot.make_ahead(next);
    ASSERT_TRUE(make);
    std::async(std::launch::async, make).get()();  // made on any thread, kept on this one
    EXPECT_FALSE(slot.make_ahead(next));
    EXPECT_EQ(*slot.view(), "1");
    EXPECT_EQ(builds, 2);
    EXPECT_TRUE(slot.update(next));
    EXPECT_EQ(*slot.view(), "2");
    EXPECT_TRUE(slot.settled(next));
    settle(slot, state);
    slot.forget_cached();
    slot.update(next);
    EXPECT_EQ(slot.view(), nullptr);
    settle(slot, next);
    EXPECT_EQ(builds, 4);
}

TEST(ViewSlot, KeepsAnErrorThatWasMadeAhead) {
    NumberSlot slot("Counting", order_number, [](int number) -> models::Result<std::string> {
        if (number == 2) throw std::runtime_error("too far");
        return std::to_string(number);
    });
    SlotState state{1, empty_document()};
    settle(slot, state);
    state.number = 2;
    slot.make_ahead(state)()();
    EXPECT_TRUE(slot.update(state));
    EXPECT_NE(slot.error().find("Counting failed (too far)"), std::string::npos);
}

TEST(ViewSlot, StaysCancelledUntilItIsRestarted) {
    std::atomic<int> builds = 0;
    NumberSlot slot("Counting", order_number,
                    [&](int number, const auto& report) -> models::Result<std::string> {
                        if (++builds == 1) {
                            while (report(0.5)) std::this_thread::yield();
                        }
                        return std::to_string(number);
                    });
    const SlotState state{1, empty_document()};
    slot.update(state);
    tests::wait_for([&] { return slot.progress().value_or(0) == 0.5; });
    slot.cancel();
    EXPECT_TRUE(slot.is_cancelled());
    settle(slot, state);
    EXPECT_EQ(slot.view(), nullptr);
    slot.restart();
    settle(slot, state);
    EXPECT_FALSE(slot.is_cancelled());
    EXPECT_EQ(*slot.view(), "1");
}

TEST(ViewSlot, ANewRequestCancelsALongBuild) {
    std::atomic<int> cancelled = 0;
    NumberSlot slot("Counting", order_number,
                    [&](int number, const auto& report) -> models::Result<std::string> {
                        while (number == 1 && report(0.5)) std::this_thread::yield();
                        cancelled += number == 1;
                        return std::to_string(number);
                    });
    SlotState state{1, empty_document()};
    slot.update(state);
    tests::wait_for([&] { return slot.progress().value_or(0) == 0.5; });
    state.number = 2;
    settle(slot, state);
    EXPECT_EQ(*slot.view(), "2");
    EXPECT_EQ(cancelled, 1);
}

TEST(ViewSlot, DropsAViewOfOtherDocumentsAtOnce) {
    NumberSlot slot("Counting", order_number, [](int number) { return std::to_string(number); });
    SlotState state{1, empty_document()};
    settle(slot, state);
    const std::weak_ptr<const app::Document> old = state.document;
    state.document = empty_document();
    EXPECT_TRUE(slot.update(state));
    EXPECT_EQ(slot.view(), nullptr);
    tests::wait_for([&] { return old.expired(); });  // on the thread that builds views
    settle(slot, state);
    EXPECT_EQ(*slot.view(), "1");
    state.number.reset();
    EXPECT_TRUE(slot.update(state));
    EXPECT_EQ(slot.view(), nullptr);
    EXPECT_TRUE(slot.settled(state));
}

TEST(ViewSlot, ShowsNoViewThatWasBuiltForOtherDocuments) {
    tests::Gate started, gate;
    NumberSlot slot("Counting", order_number, [&](int number) -> models::Result<std::string> {
        if (number == 1) {
            started.open();
            gate.wait();
        }
        return std::to_string(number);
    });
    SlotState state{1, empty_document()};
    slot.update(state);
    started.wait();
    state = {2, empty_document()};
    slot.update(state);
    gate.open();
    tests::wait_for([&] {
        slot.update(state);
        EXPECT_TRUE(!slot.view() || *slot.view() == "2");
        return slot.view() != nullptr;
    });
}

TEST(ViewSlot, BuildsOnceForARequestThatStaysTheSame) {
    std::atomic<int> builds = 0;
    NumberSlot slot("Counting", order_number, [&](int) { return std::to_string(++builds); });
    const SlotState state{1, empty_document()};
    settle(slot, state);
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(slot.update(state));
    EXPECT_EQ(builds, 1);
}

TEST(ViewSlot, SaysWhyAViewCannotBeBuilt) {
    NumberSlot slot("Counting", order_number, [](int number) -> models::Result<std::string> {
        if (number == 1) return models::fail("1 cannot be drawn.");
        return std::to_string(number);
    });
    SlotState state{1, empty_document()};
    settle(slot, state);
    EXPECT_EQ(slot.view(), nullptr);
    EXPECT_EQ(slot.error(), "1 cannot be drawn.");
    state.number = 2;
    settle(slot, state);
    EXPECT_EQ(slot.error(), "");
    EXPECT_EQ(*slot.view(), "2");
}

}  // namespace
