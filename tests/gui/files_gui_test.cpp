#include "app/window/session.h"
#include "app/workspace/planner_form.h"
#include "tests/gui/test_window.h"
#include "tests/profiler/formats/snapshot_bytes.h"
#include "tests/support/synthetic_trace.h"

#include <GLFW/glfw3.h>

#include <fstream>
#include <iterator>

namespace tests {
namespace {

std::string toast_texts() {
    std::string all;
    for (const auto& toast : window().ui().toasts.toasts) all += toast.notice.text + "\n";
    return all;
}

GUI_TEST(files, opens_files_through_the_dialog) {
    window().reset(c);
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_O);
    c->SetRef("Open traces");
    c->ItemInputValue("##name", window().trace("original").c_str());
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{1});
    IM_CHECK(window().workspace().selection().a != nullptr);
    IM_CHECK(window().workspace().selection().b == nullptr);
}

GUI_TEST(files, picks_files_from_the_list) {
    window().reset(c);
    window().ui().open_dialog.folder = window().folder();
    window().click(c,
                   "//##toolbar/**/"
                   "\xef\x81\xbc  Open");
    c->SetRef("Open traces");
    c->ItemClick("**/tempo.tscope/##entry");
    c->KeyDown(ImGuiMod_Ctrl);
    c->ItemClick("**/original.tscope/##entry");
    c->KeyUp(ImGuiMod_Ctrl);
    window().click(c, "###confirm");
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    // The baseline becomes A, in whatever order the files are opened.
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "original");
    IM_CHECK_STR_EQ(window().workspace().selection().b->recipe.c_str(), "tempo");
}

GUI_TEST(files, opens_a_folder_of_traces) {
    window().reset(c);
    window().open_files(c, {window().folder()});
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{3});
    IM_CHECK_EQ(window().workspace().slots().compare.view()->view.columns.size(), size_t{3});
}

/// Memory over time, and in words what a snapshot lacks.
GUI_TEST(files, opens_a_snapshot) {
    using namespace profiler;
    constexpr int64_t kBase = 0x7f0000000000;
    AllocatorRecording recording;
    recording.segments.push_back({.address = kBase,
                                  .size_bytes = 2 << 20,
                                  .is_small = true,
                                  .blocks = {{kBase, 2 << 20, 0, BlockState::kInactive}}});
    for (int64_t i = 0; i < 8; ++i) {
        for (const auto action : {RecordedAction::kAlloc, RecordedAction::kFreeRequested,
                                  RecordedAction::kFreeCompleted}) {
            recording.events.push_back({.action = action,
                                        .address = kBase,
                                        .size_bytes = 512 * (i + 1),
                                        .time_us = 1000 + i});
        }
    }
    const auto file = window().folder() / "snapshot.pickle";
    std::ofstream(file, std::ios::binary) << snapshot_bytes(recording);
    window().reset(c);
    window().open_files(c, {file});
    std::filesystem::remove(file);
    IM_CHECK_STR_EQ(toast_texts().c_str(), "");
    const auto a = window().workspace().selection().a;
    IM_CHECK(a != nullptr);
    IM_CHECK(a->has_step);
    IM_CHECK_STR_EQ(a->recipe.c_str(), "snapshot");
    IM_CHECK_STR_EQ(a->state.c_str(), "8 allocations");
    IM_CHECK_EQ(a->index->peak().allocated_bytes, int64_t{8 * 512});
    IM_CHECK(window().workspace().slots().timeline.view() != nullptr);
    IM_CHECK(window().workspace().views().ledger.view() != nullptr);
    IM_CHECK(window().workspace().views().ledger.view()->rows.empty());
    for (const char* panel : {"//###flame", "//###blocks"}) {
        window().focus(c, panel);
    }
    IM_CHECK(window().workspace().views().flame.view() != nullptr);
    IM_CHECK(window().workspace().views().blocks.view() != nullptr);
    window().take_picture(c, "snapshot_blocks");
}

/// The next start opens the traces again, with the same A and B, GPU and step of the Planner.
GUI_TEST(files, a_session_comes_back) {
    window().show(c, {"original", "tempo", "tempo-packed"});
    app::PlannerForm query;
    query.workload.seq_len = 256;
    query.recipes = {"tempo", "best"};
    query.optimizer = models::Optimizer::kSgd;
    query.is_chosen = true;
    const app::PanelEvents no_choices{
        .queries = {.plan = app::GpuForm(), .planner = app::PlannerForm()}};
    const auto documents = window().workspace().documents();
    window().workspace().apply(
        {.traces = {.set_a = documents[1]},
         .queries = {.plan = app::GpuForm{"a100-80gb", /*is_chosen=*/true}, .planner = query}});
    window().apply(c, {.traces = {.set_b = documents[2]}});
    const app::Session session = app::current_settings(window().ui()).session;
    IM_CHECK_EQ(session.files.size(), size_t{3});
    IM_CHECK_STR_EQ(session.a.filename().c_str(), "tempo.tscope");
    IM_CHECK_STR_EQ(session.b.filename().c_str(), "tempo-packed.tscope");

    window().reset(c);
    window().workspace().apply(no_choices);
    app::restore_choices(window().workspace(), session);
    app::reopen_traces(window().workspace(), session);
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{3});
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "tempo");
    IM_CHECK_STR_EQ(window().workspace().selection().b->recipe.c_str(), "tempo-packed");
    IM_CHECK_STR_EQ(window().workspace().queries().plan.gpu.c_str(), "a100-80gb");
    IM_CHECK(window().workspace().queries().plan.is_chosen);  // though it is the usual one
    IM_CHECK(window().workspace().queries().planner == query);
    window().workspace().apply(no_choices);
}

/// The file manager drops files onto the window.
GUI_TEST(files, opens_dropped_files) {
    window().reset(c);
    const std::string original = window().trace("original"), tempo = window().trace("tempo");
    const char* paths[] = {tempo.c_str(), original.c_str()};
    GLFWwindow* const target = window().shell().window();
    const GLFWdropfun drop = glfwSetDropCallback(target, nullptr);
    glfwSetDropCallback(target, drop);
    IM_CHECK_SILENT(drop != nullptr);
    drop(target, 2, paths);
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "original");
}

/// Every panel shows a million allocations; gui_bench measures how fast.
GUI_TEST(files, shows_a_million_allocations) {
    window().reset(c);
    constexpr int64_t kMillion = 1'000'000;
    window().workspace().add(
        app::make_document(window().folder() / "million.tscope",
                           std::make_shared<const profiler::Trace>(
                               make_synthetic_trace({.num_allocations = kMillion}))));
    for (const app::PanelRow& panel : app::kPanels) {
        window().focus(c, ("//###" + std::string(panel.id)).c_str());
    }
    IM_CHECK_STR_EQ(toast_texts().c_str(), "");
    const auto& views = window().workspace().views();
    IM_CHECK_EQ(window().workspace().selection().a->trace->allocations.size(),
                static_cast<size_t>(kMillion));
    IM_CHECK(window().workspace().slots().timeline.view() != nullptr);
    IM_CHECK(window().workspace().slots().kernels.view() != nullptr);
    IM_CHECK(views.blocks.view() != nullptr);
    IM_CHECK(views.flame.view() != nullptr);
    IM_CHECK_GT(views.ledger.view()->rows.size(), size_t{100});
    window().take_picture(c, "million_allocations");
}

GUI_TEST(files, reports_a_bad_file_as_one_sentence) {
    window().reset(c);
    const auto bad = window().folder() / "bad.tscope";
    std::ofstream(bad) << "this is not a trace";
    window().open_files(c, {bad});
    std::filesystem::remove(bad);
    IM_CHECK(window().workspace().documents().empty());
    IM_CHECK(toast_texts().find("bad.tscope") != std::string::npos);
    window().open_files(c, {window().folder() / "missing.tscope"});
    IM_CHECK(toast_texts().find("missing.tscope") != std::string::npos);
    IM_CHECK_EQ(window().ui().toasts.toasts.size(), size_t{2});
}

GUI_TEST(files, closes_a_trace) {
    window().show(c, {"original", "tempo"});
    window().workspace().close(window().workspace().selection().a);
    window().settle(c);
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "tempo");
    IM_CHECK(window().workspace().selection().b == nullptr);
    window().press(c, ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_W);
    IM_CHECK(window().workspace().documents().empty());
    IM_CHECK(window().workspace().slots().compare.view() == nullptr);
    IM_CHECK(window().workspace().slots().timeline.view() == nullptr);
}

GUI_TEST(files, remembers_opened_files) {
    window().show(c, {"tempo", "original"});
    IM_CHECK_GE(window().ui().settings.recent_files.size(), size_t{2});
    IM_CHECK(window().ui().settings.recent_files[0] == window().trace("original"));
}

GUI_TEST(files, one_file_is_open_once_however_it_is_named) {
    window().show(c, {"original", "tempo"});
    std::error_code error;
    const auto tempo = window().trace("tempo");
    const auto relative = std::filesystem::relative(tempo, error);
    window().open_files(c, {tempo, relative, window().folder() / "." / "tempo.tscope"});
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    IM_CHECK_STR_EQ(window().workspace().selection().b->recipe.c_str(), "tempo");
}

GUI_TEST(files, a_picture_of_the_window_is_without_the_dialog) {
    window().show(c, {"original", "tempo"});
    window().take_picture(c, "without_dialog");
    window().press(c, ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E);
    const auto saved = window().pictures() / "saved_by_dialog.png";
    std::filesystem::remove(saved);
    window().ui().save_dialog.folder = window().pictures();
    c->KeyCharsReplace("saved_by_dialog");  // the dialog adds the extension
    window().press(c, ImGuiKey_Enter);
    IM_CHECK(std::filesystem::exists(saved));
    IM_CHECK(read_file(saved) == read_file(window().pictures() / "without_dialog.png"));
}

GUI_TEST(files, a_file_is_replaced_only_when_asked_twice) {
    window().show(c, {"original", "tempo"});
    const auto chart = window().folder() / "comparison.svg";
    std::ofstream(chart) << "precious";
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_E);
    c->SetRef("Export");
    c->ItemInputValue("##name", chart.c_str());
    window().settle(c);
    IM_CHECK(read_file(chart) == "precious");
    IM_CHECK(!window().ui().save_dialog.to_replace.empty());
    window().take_picture(c, "replace_question", true);
    window().click(c, "###confirm");
    const std::string svg = read_file(chart);
    std::filesystem::remove(chart);
    IM_CHECK(svg.find("<svg") != std::string::npos);
    IM_CHECK(toast_texts().find("Wrote") != std::string::npos);
}

GUI_TEST(files, every_export_is_written_and_said) {
    window().show(c, {"original", "tempo"});
    for (const char* name : {"a.svg", "b.pdf", "c.html"}) {
        window().workspace().export_comparison(window().folder() / name, {.dark = true});
    }
    window().workspace().export_timeline(window().folder() / "d.svg", {});
    window().settle(c);
    for (const char* name : {"a.svg", "b.pdf", "c.html", "d.svg"}) {
        IM_CHECK(std::filesystem::remove(window().folder() / name));
        IM_CHECK(toast_texts().find(name) != std::string::npos);
    }
}

GUI_TEST(files, the_first_page_shows_what_tempo_saves) {
    window().reset(c);
    setenv("XDG_CACHE_HOME", (window().folder() / "cache").c_str(), 1);
    window().click(c, "//###timeline/###examples");
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    const app::Selection& selection = window().workspace().selection();
    IM_CHECK_STR_EQ(selection.a->recipe.c_str(), "original");
    IM_CHECK_STR_EQ(selection.b->recipe.c_str(), "tempo");
    IM_CHECK(window().workspace().headline().find("less memory") != std::string::npos);
    for (const auto& file : window().ui().settings.recent_files) {
        IM_CHECK(file.parent_path() != selection.a->file.parent_path());
    }
}

}  // namespace
}  // namespace tests
