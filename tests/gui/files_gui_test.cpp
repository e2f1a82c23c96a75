#include "app/window/session.h"
#include "app/workspace/planner_query.h"
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

void opens_files_through_the_dialog(ImGuiTestContext* c) {
    window().reset(c);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    c->Yield(2);
    c->SetRef("Open traces");
    c->ItemInputValue("##name", window().trace("original").c_str());
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{1});
    IM_CHECK(window().workspace().selection().a != nullptr);
    IM_CHECK(window().workspace().selection().b == nullptr);
}

void picks_files_from_the_list(ImGuiTestContext* c) {
    window().reset(c);
    window().ui().open_dialog.folder = window().folder();
    c->ItemClick(
        "//##toolbar/**/"
        "\xef\x81\xbc  Open");
    c->Yield(2);
    c->SetRef("Open traces");
    c->ItemClick("**/tempo.tscope/##entry");
    c->KeyDown(ImGuiMod_Ctrl);
    c->ItemClick("**/original.tscope/##entry");
    c->KeyUp(ImGuiMod_Ctrl);
    c->ItemClick("###confirm");
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    // The baseline becomes A, in whatever order the files are opened.
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "original");
    IM_CHECK_STR_EQ(window().workspace().selection().b->recipe.c_str(), "tempo");
}

void opens_a_folder_of_traces(ImGuiTestContext* c) {
    window().reset(c);
    window().workspace().open({window().folder()});
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{3});
    IM_CHECK_EQ(window().workspace().slots().compare.view()->view.columns.size(), size_t{3});
}

/// Memory over time, and in words what a snapshot lacks.
void opens_a_snapshot(ImGuiTestContext* c) {
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
    window().workspace().open({file});
    window().settle(c);
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
        c->WindowFocus(panel);
        window().settle(c);
    }
    IM_CHECK(window().workspace().views().flame.view() != nullptr);
    IM_CHECK(window().workspace().views().blocks.view() != nullptr);
    window().take_picture(c, "snapshot_blocks");
}

/// The next start opens the traces again, with the same A and B, GPU and step of the Planner.
void a_session_comes_back(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo", "tempo-packed"});
    app::PlannerQuery query;
    query.workload.seq_len = 256;
    query.recipes = {"tempo", "best"};
    query.optimizer = models::Optimizer::kSgd;
    query.is_chosen = true;
    app::PanelEvents events;
    events.traces.set_a = window().workspace().documents()[1];
    events.queries.plan = app::PlanChoice{"a100-80gb", /*is_chosen=*/true};
    events.queries.planner = query;
    window().workspace().apply(events);
    events = {};
    events.traces.set_b = window().workspace().documents()[2];
    window().workspace().apply(events);
    window().settle(c);
    const app::Session session = app::current_settings(window().ui()).session;
    IM_CHECK_EQ(session.files.size(), size_t{3});
    IM_CHECK_STR_EQ(session.a.filename().c_str(), "tempo.tscope");
    IM_CHECK_STR_EQ(session.b.filename().c_str(), "tempo-packed.tscope");

    window().reset(c);
    events = {};
    events.queries.plan = app::PlanChoice();
    events.queries.planner = app::PlannerQuery();
    window().workspace().apply(events);
    app::restore_choices(window().workspace(), session);
    app::reopen_traces(window().workspace(), session);
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{3});
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "tempo");
    IM_CHECK_STR_EQ(window().workspace().selection().b->recipe.c_str(), "tempo-packed");
    IM_CHECK_STR_EQ(window().workspace().queries().plan.gpu.c_str(), "a100-80gb");
    IM_CHECK(window().workspace().queries().plan.is_chosen);  // though it is the usual one
    IM_CHECK(window().workspace().queries().planner == query);
    events = {};
    events.queries.plan = app::PlanChoice();
    events.queries.planner = app::PlannerQuery();
    window().workspace().apply(events);
}

/// The file manager drops files onto the window.
void opens_dropped_files(ImGuiTestContext* c) {
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
void shows_a_million_allocations(ImGuiTestContext* c) {
    window().reset(c);
    constexpr int64_t kMillion = 1'000'000;
    window().workspace().add(
        app::make_document(window().folder() / "million.tscope",
                           std::make_shared<const profiler::Trace>(
                               make_synthetic_trace({.num_allocations = kMillion}))));
    for (const app::PanelRow& panel : app::kPanels) {
        c->WindowFocus(("//###" + std::string(panel.id)).c_str());
        window().settle(c);
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

void reports_a_bad_file_as_one_sentence(ImGuiTestContext* c) {
    window().reset(c);
    const auto bad = window().folder() / "bad.tscope";
    std::ofstream(bad) << "this is not a trace";
    window().workspace().open({bad});
    window().settle(c);
    std::filesystem::remove(bad);
    IM_CHECK(window().workspace().documents().empty());
    IM_CHECK(toast_texts().find("bad.tscope") != std::string::npos);
    window().workspace().open({window().folder() / "missing.tscope"});
    window().settle(c);
    IM_CHECK(toast_texts().find("missing.tscope") != std::string::npos);
    IM_CHECK_EQ(window().ui().toasts.toasts.size(), size_t{2});
}

void reads_a_file_again_without_a_second_copy(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    window().workspace().open({window().trace("tempo")});
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    IM_CHECK_STR_EQ(window().workspace().selection().b->recipe.c_str(), "tempo");
}

void closes_a_trace(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    window().workspace().close(window().workspace().selection().a);
    window().settle(c);
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "tempo");
    IM_CHECK(window().workspace().selection().b == nullptr);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_W);
    window().settle(c);
    IM_CHECK(window().workspace().documents().empty());
    IM_CHECK(window().workspace().slots().compare.view() == nullptr);
    IM_CHECK(window().workspace().slots().timeline.view() == nullptr);
}

void remembers_opened_files(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"tempo", "original"});
    IM_CHECK_GE(window().ui().settings.recent_files.size(), size_t{2});
    IM_CHECK(window().ui().settings.recent_files[0] == window().trace("original"));
}

void one_file_is_open_once_however_it_is_named(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"tempo"});
    std::error_code error;
    const auto relative = std::filesystem::relative(window().trace("tempo"), error);
    window().workspace().open({relative, window().folder() / "." / "tempo.tscope"});
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{1});
}

void a_picture_of_the_window_is_without_the_dialog(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    window().take_picture(c, "without_dialog");
    c->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E);
    c->Yield(3);
    const auto saved = window().pictures() / "saved_by_dialog.png";
    std::filesystem::remove(saved);
    window().ui().save_dialog.folder = window().pictures();
    c->KeyCharsReplace("saved_by_dialog");  // the dialog adds the extension
    c->KeyPress(ImGuiKey_Enter);
    c->Yield(4);
    IM_CHECK(std::filesystem::exists(saved));
    IM_CHECK(read_file(saved) == read_file(window().pictures() / "without_dialog.png"));
}

void a_file_is_replaced_only_when_asked_twice(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    const auto chart = window().folder() / "comparison.svg";
    std::ofstream(chart) << "precious";
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_E);
    c->Yield(2);
    c->SetRef("Export");
    c->ItemInputValue("##name", chart.c_str());
    window().settle(c);
    IM_CHECK(read_file(chart) == "precious");
    IM_CHECK(!window().ui().save_dialog.to_replace.empty());
    window().take_picture(c, "replace_question", true);
    c->ItemClick("###confirm");
    window().settle(c);
    const std::string svg = read_file(chart);
    std::filesystem::remove(chart);
    IM_CHECK(svg.find("<svg") != std::string::npos);
    IM_CHECK(toast_texts().find("Wrote") != std::string::npos);
}

void every_export_is_written_and_said(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
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

void a_sweep_alone_is_shown_as_such(ImGuiTestContext* c) {
    window().reset(c);
    window().workspace().open({window().folder() / "sweeps" / "tempo.tscope"});
    window().settle(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{1});
    IM_CHECK(window().workspace().selection().a != nullptr);
    IM_CHECK(!window().workspace().selection().a->has_step);
    IM_CHECK(window().workspace().slots().compare.view()->view.has_throughput);
    window().take_picture(c, "sweep_alone");
}

void the_first_page_shows_what_tempo_saves(ImGuiTestContext* c) {
    window().reset(c);
    setenv("XDG_CACHE_HOME", (window().folder() / "cache").c_str(), 1);
    c->ItemClick("//###compare/###examples");
    window().settle(c);
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

void register_files_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "files", name)->TestFunc = run;
    };
    add("opens_files_through_the_dialog", opens_files_through_the_dialog);
    add("picks_files_from_the_list", picks_files_from_the_list);
    add("opens_a_folder_of_traces", opens_a_folder_of_traces);
    add("opens_a_snapshot", opens_a_snapshot);
    add("a_session_comes_back", a_session_comes_back);
    add("opens_dropped_files", opens_dropped_files);
    add("shows_a_million_allocations", shows_a_million_allocations);
    add("reports_a_bad_file_as_one_sentence", reports_a_bad_file_as_one_sentence);
    add("reads_a_file_again_without_a_second_copy", reads_a_file_again_without_a_second_copy);
    add("closes_a_trace", closes_a_trace);
    add("remembers_opened_files", remembers_opened_files);
    add("one_file_is_open_once_however_it_is_named", one_file_is_open_once_however_it_is_named);
    add("a_picture_of_the_window_is_without_the_dialog",
        a_picture_of_the_window_is_without_the_dialog);
    add("a_file_is_replaced_only_when_asked_twice", a_file_is_replaced_only_when_asked_twice);
    add("every_export_is_written_and_said", every_export_is_written_and_said);
    add("the_first_page_shows_what_tempo_saves", the_first_page_shows_what_tempo_saves);
    add("a_sweep_alone_is_shown_as_such", a_sweep_alone_is_shown_as_such);
}

}  // namespace tests
