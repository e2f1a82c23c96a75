// Parts of the window that need no display.
#include "app/user/settings.h"
#include "app/widgets/command_palette.h"
#include "app/widgets/file_dialog.h"
#include "app/window/bars.h"
#include "app/window/layout_history.h"
#include "app/workspace/capture_session.h"
#include "app/workspace/job_queue.h"
#include "app/workspace/selection.h"
#include "app/workspace/view_slot.h"
#include "profiler/protocol/messages.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct ScratchFolder {
    ScratchFolder()
        : path(fs::temp_directory_path() / ("temposcope_parts_" + std::to_string(getpid()))) {
        fs::create_directories(path);
    }
    ~ScratchFolder() { fs::remove_all(path); }
    fs::path path;
};

TEST(Settings, ComeBackAsTheyWereSaved) {
    const ScratchFolder scratch;
    app::Settings settings;
    settings.dark = false;
    settings.window_width = 1234;
    settings.shown_panels["health"] = false;
    settings.capture_form = app::to_fields({.model = "gpt2", .batch_size = 3});
    settings.remember_file(scratch.path / "a.tscope");
    app::save_settings(settings, scratch.path / "deep" / "window.json");
    EXPECT_EQ(app::load_settings(scratch.path / "deep" / "window.json"), settings);
    // No other file is left in the folder, which another window may be using.
    const fs::directory_iterator files(scratch.path / "deep");
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(Settings, AreTheDefaultsWhenTheFileIsMissingOrDamaged) {
    const ScratchFolder scratch;
    EXPECT_EQ(app::load_settings(scratch.path / "none.json"), app::Settings{});
    for (const char* damaged : {"", "{", "[1]", R"({"dark": "no", "window_width": [1]})"}) {
        std::ofstream(scratch.path / "window.json") << damaged;
        EXPECT_EQ(app::load_settings(scratch.path / "window.json"), app::Settings{}) << damaged;
    }
}

TEST(Settings, KeepAFewRecentFilesNewestFirstAndOnce) {
    app::Settings settings;
    for (int i = 0; i < 40; ++i) settings.remember_file("/t/" + std::to_string(i) + ".tscope");
    settings.remember_file("/t/35.tscope");
    EXPECT_EQ(settings.recent_files.size(), app::Settings::kMaxRecentFiles);
    EXPECT_EQ(settings.recent_files[0], "/t/35.tscope");
    EXPECT_EQ(settings.recent_files[1], "/t/39.tscope");
}

TEST(CommandPalette, FindsLettersInOrderAndPrefersStartsOfWords) {
    EXPECT_LT(app::match_score("xq", "Open traces"), 0);
    EXPECT_LT(app::match_score("to", "Open"), 0);
    EXPECT_GE(app::match_score("", "Open traces"), 0);
    EXPECT_GT(app::match_score("light", "Light theme"),
              app::match_score("light", "All right then"));
    EXPECT_GT(app::match_score("ot", "Open traces"), app::match_score("ot", "Bottom"));
}

TEST(CaptureForm, ComesBackFromItsFields) {
    const app::CaptureForm form{.model = "gpt2-medium",
                                .num_layers = 0,
                                .head = "lm",
                                .recipes = {"original", "gelu=in_place,masks=bit"},
                                .batch_size = 2,
                                .memory_limit = "3GiB",
                                .folder = "/somewhere else/out"};
    EXPECT_EQ(app::form_from_fields(app::to_fields(form)), form);
    EXPECT_EQ(app::form_from_fields({{"batch", "many"}}), app::CaptureForm{});
}

TEST(CaptureForm, BecomesOneRequestPerRecipe) {
    const auto requests = app::make_requests({.recipes = {"original", "tempo"}, .folder = "/out"});
    ASSERT_TRUE(requests) << requests.error().message;
    ASSERT_EQ(requests->size(), 2U);
    EXPECT_EQ((*requests)[1].output_path, "/out/tempo.tscope");
    EXPECT_EQ((*requests)[1].workload.at("recipe_name"), "tempo");
}

TEST(CaptureForm, IsRefusedInOneSentenceWhenItCannotRun) {
    const auto refused = [](const app::CaptureForm& form) {
        const auto requests = app::make_requests(form);
        return requests ? std::string("accepted") : requests.error().message;
    };
    EXPECT_NE(refused({.model = "bert-huge"}).find("bert-huge"), std::string::npos);
    EXPECT_NE(refused({.recipes = {"temp"}}).find("temp"), std::string::npos);
    EXPECT_NE(refused({.seq_len = 100'000}), "accepted");
    EXPECT_NE(refused({.memory_limit = "lots"}), "accepted");
    // The checks are those of the command.
    EXPECT_NE(refused({.memory_limit = "0"}).find("memory-limit is 0"), std::string::npos);
    EXPECT_NE(refused({.recipes = {"tempo", "tempo"}}).find("twice"), std::string::npos);
    EXPECT_NE(refused({.num_layers = -1}), "accepted");
    EXPECT_NE(refused({.steps = 0}).find("at least 1 step"), std::string::npos);
    EXPECT_NE(refused({.recipes = {}}).find("at least one"), std::string::npos);
    EXPECT_EQ(refused({.recipes = {"original", "gelu=in_place,masks=bit"}}), "accepted");
}

TEST(LiveCurve, StaysSmallAndKeepsThePeak) {
    app::LiveCurve curve;
    for (int i = 0; i < 100'000; ++i) curve.add(i, i == 41'234 ? 9e9 : 1000 + i % 7);
    EXPECT_LE(curve.time_ns.size(), app::LiveCurve::kMaxPoints);
    EXPECT_GE(curve.time_ns.size(), app::LiveCurve::kMaxPoints / 2);
    EXPECT_EQ(curve.time_ns.size(), curve.allocated_bytes.size());
    EXPECT_TRUE(std::is_sorted(curve.time_ns.begin(), curve.time_ns.end()));
    const auto highest =
        std::max_element(curve.allocated_bytes.begin(), curve.allocated_bytes.end());
    EXPECT_EQ(*highest, 9e9);
    EXPECT_EQ(curve.time_ns[static_cast<size_t>(highest - curve.allocated_bytes.begin())], 41'234);
}

TEST(RateLimit, LetsPassOneAPeriod) {
    using namespace std::chrono_literals;
    app::RateLimit limit(200ms);
    const app::RateLimit::Clock::time_point start{};
    int passed = 0;
    for (auto t = 0ms; t < 1000ms; t += 50ms) passed += limit.passes(start + t);
    EXPECT_EQ(passed, 5);
}

/// The test's own timeout ends a wait that never succeeds.
void wait_for(const std::function<bool()>& holds) {
    while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Jobs wait at the gate until the test opens it.
class Gate {
public:
    void open() { promise_.set_value(); }
    void wait() const { future_.wait(); }

private:
    std::promise<void> promise_;
    std::shared_future<void> future_{promise_.get_future()};
};

TEST(JobQueue, TurnsAnExceptionIntoASentenceAndContinues) {
    app::JobQueue<int> queue(app::Waiting::kKeep);
    queue.start("Counting", [](const auto&) -> models::Result<int> {
        throw std::runtime_error("no fingers left");
    });
    queue.start("Counting", [](const auto&) -> models::Result<int> { throw std::bad_alloc(); });
    queue.start("Counting", [](const auto&) -> models::Result<int> { return 7; });
    wait_for([&] { return !queue.progress(); });
    const auto results = queue.take();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_NE(results[0].error().message.find("Counting failed (no fingers left)"),
              std::string::npos);
    EXPECT_NE(results[1].error().message.find("memory"), std::string::npos);
    EXPECT_EQ(results[2].value(), 7);
    EXPECT_FALSE(queue.busy());
}

TEST(JobQueue, RunsAllWaitingJobsInOrder) {
    Gate gate;
    app::JobQueue<int> queue(app::Waiting::kKeep);
    for (int i = 0; i < 5; ++i) {
        queue.start("Counting", [&gate, i](const auto&) -> models::Result<int> {
            gate.wait();
            return i;
        });
    }
    EXPECT_TRUE(queue.busy());
    gate.open();
    wait_for([&] { return !queue.progress(); });
    std::vector<int> numbers;
    for (const auto& result : queue.take()) numbers.push_back(*result);
    EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(JobQueue, RunsOnlyTheNewestWaitingJobWhenTheOthersAreDropped) {
    Gate started, gate;
    app::JobQueue<int> queue(app::Waiting::kDrop);
    queue.start("Counting", [&](const auto&) -> models::Result<int> {
        started.open();
        gate.wait();
        return 0;
    });
    started.wait();
    queue.start("Counting", [](const auto&) -> models::Result<int> { return 1; });
    queue.start("Counting", [](const auto&) -> models::Result<int> { return 2; });
    gate.open();
    wait_for([&] { return !queue.progress(); });
    const auto results = queue.take();
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[0].value(), 0);
    EXPECT_EQ(results[1].value(), 2);
}

TEST(JobQueue, FinishesWaitingJobsBeforeItIsDestroyed) {
    int written = 0;
    {
        app::JobQueue<int> queue(app::Waiting::kKeep);
        for (int i = 0; i < 3; ++i) {
            queue.start("Writing", [&](const auto&) -> models::Result<int> { return ++written; });
        }
    }
    EXPECT_EQ(written, 3);
}

TEST(JobQueue, DropsTheRunningAndTheWaitingJobsWhenItIsCancelled) {
    Gate reported;
    app::JobQueue<int> queue(app::Waiting::kKeep);
    queue.start("Reading a", [&](const auto& report) -> models::Result<int> {
        report(0.25);
        reported.open();
        while (report(0.5)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return 1;
    });
    queue.start("Reading b", [](const auto&) -> models::Result<int> { return 2; });
    reported.wait();
    const auto progress = queue.progress();
    ASSERT_TRUE(progress);
    EXPECT_EQ(progress->name, "Reading a");
    EXPECT_GE(progress->share, 0.25);
    EXPECT_EQ(progress->waiting, 1U);
    queue.cancel();
    wait_for([&] { return !queue.busy(); });
    EXPECT_TRUE(queue.take().empty());
    queue.start("Reading c", [](const auto&) -> models::Result<int> { return 3; });
    wait_for([&] { return !queue.progress(); });
    EXPECT_EQ(queue.take().size(), 1U);
}

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

std::optional<app::Wanted<int>> wanted_number(const SlotState& state) {
    if (!state.number) return std::nullopt;
    return app::Wanted<int>{*state.number, {state.document}};
}

void settle(NumberSlot& slot, const SlotState& state) {
    wait_for([&] {
        slot.update(state);
        return slot.settled(state);
    });
}

TEST(ViewSlot, KeepsTheViewUntilTheNextOneOfTheSameDocumentsIsReady) {
    Gate gate;
    NumberSlot slot("Counting", wanted_number, [&](int number) -> models::Result<std::string> {
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

TEST(ViewSlot, DropsAViewOfOtherDocumentsAtOnce) {
    NumberSlot slot("Counting", wanted_number, [](int number) { return std::to_string(number); });
    SlotState state{1, empty_document()};
    settle(slot, state);
    const std::weak_ptr<const app::Document> old = state.document;
    state.document = empty_document();
    EXPECT_TRUE(slot.update(state));
    EXPECT_EQ(slot.view(), nullptr);
    EXPECT_TRUE(old.expired());
    settle(slot, state);
    EXPECT_EQ(*slot.view(), "1");
    state.number.reset();
    EXPECT_TRUE(slot.update(state));
    EXPECT_EQ(slot.view(), nullptr);
    EXPECT_TRUE(slot.settled(state));
}

TEST(ViewSlot, ShowsNoViewThatWasBuiltForOtherDocuments) {
    Gate started, gate;
    NumberSlot slot("Counting", wanted_number, [&](int number) -> models::Result<std::string> {
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
    wait_for([&] {
        slot.update(state);
        EXPECT_TRUE(!slot.view() || *slot.view() == "2");
        return slot.view() != nullptr;
    });
}

TEST(ViewSlot, BuildsOnceForARequestThatStaysTheSame) {
    std::atomic<int> builds = 0;
    NumberSlot slot("Counting", wanted_number, [&](int) { return std::to_string(++builds); });
    const SlotState state{1, empty_document()};
    settle(slot, state);
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(slot.update(state));
    EXPECT_EQ(builds, 1);
}

TEST(ViewSlot, SaysWhyAViewCannotBeBuilt) {
    NumberSlot slot("Counting", wanted_number, [](int number) -> models::Result<std::string> {
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

TEST(FileDialog, GivesASavedFileAnExtension) {
    const std::vector<std::string> charts{".svg", ".pdf"};
    EXPECT_EQ(app::file_to_save("/t", "a.pdf", charts), "/t/a.pdf");
    EXPECT_EQ(app::file_to_save("/t", "a.SVG", charts), "/t/a.SVG");
    EXPECT_EQ(app::file_to_save("/t", "a", charts), "/t/a.svg");
    EXPECT_EQ(app::file_to_save("/t", "a.jpg", charts), "/t/a.jpg.svg");
    EXPECT_EQ(app::file_to_save("/t", "/elsewhere/a", charts), "/elsewhere/a.svg");
}

TEST(StatusBar, SaysWhatIsSelected) {
    app::Selection selection;
    EXPECT_EQ(app::describe_selection(selection), "");
    selection.range = profiler::TimeRange{1e9, 1.25e9};
    EXPECT_NE(app::describe_selection(selection).find("250 ms selected"), std::string::npos);
    selection.tensor =
        app::SelectedTensor{.name = "probs", .module_path = "layer.1", .size_bytes = 4096};
    EXPECT_NE(app::describe_selection(selection).find("probs  4,096 B"), std::string::npos);
}

class LayoutHistory : public testing::Test {
protected:
    /// Shows a look for as many frames as a change needs to settle.
    void show(const std::string& look, ImVec2 size = {1600, 1000}) {
        for (int i = 0; i < 5; ++i) {
            history_.observe({look, {}}, size, false, [&] { return look; });
        }
    }
    app::LayoutHistory history_;
};

TEST_F(LayoutHistory, BringsBackOneChangeAfterTheOther) {
    show("first");
    EXPECT_FALSE(history_.can_undo());
    show("second");
    show("third");
    EXPECT_EQ(history_.undo()->places, "second");
    show("second");
    EXPECT_EQ(history_.undo()->places, "first");
    show("first");
    EXPECT_FALSE(history_.can_undo());
    show("fourth");
    EXPECT_EQ(history_.undo()->places, "first");
}

TEST_F(LayoutHistory, TakesNoResizedWindowAndNoDragForAChange) {
    show("first");
    show("narrow", {900, 600});
    EXPECT_FALSE(history_.can_undo());
    for (int i = 0; i < 5; ++i) {
        history_.observe({"dragging", {}}, {900, 600}, true, [] { return "dragging"; });
    }
    EXPECT_FALSE(history_.can_undo());
    show("dragged", {900, 600});
    EXPECT_EQ(history_.undo()->places, "narrow");
}

}  // namespace
