#include "models/observer/callback_target.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace models {
namespace {

TEST(CallbackTarget, ReachesTheObjectItIsSetToAndNoOther) {
    CallbackTarget<int> target;
    int calls = 0;
    target.with([&](int&) { ++calls; });
    EXPECT_EQ(calls, 0);
    int value = 7;
    target.set(&value);
    target.with([&](const int& seen) { calls += seen; });
    EXPECT_EQ(calls, 7);
    target.set(nullptr);
    target.with([&](int&) { ++calls; });
    EXPECT_EQ(calls, 7);
}

TEST(CallbackTarget, ReleasesTheObjectOnlyWhenNoCallbackUsesIt) {
    CallbackTarget<std::atomic<bool>> target;
    std::atomic<bool> alive = true;
    target.set(&alive);
    std::atomic<bool> inside = false;
    std::atomic<bool> saw_it_gone = false;
    std::thread callback([&] {
        target.with([&](const std::atomic<bool>& used) {
            inside = true;
            for (int i = 0; i < 1000; ++i) {
                if (!used) saw_it_gone = true;
                std::this_thread::yield();
            }
        });
    });
    while (!inside) std::this_thread::yield();
    target.set(nullptr);
    alive = false;  // as the end of whom the callback used
    callback.join();
    EXPECT_FALSE(saw_it_gone);
}

}  // namespace
}  // namespace models
