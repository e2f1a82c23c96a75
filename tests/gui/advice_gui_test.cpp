// The verdict line and the panel "What to do", on a program that runs out of memory.
#include "tests/gui/test_window.h"

#include <imgui_internal.h>

#include <algorithm>
#include <string>

namespace tests {
namespace {

void open_failed(ImGuiTestContext* c) {
    window().reset(c);
    window().open_files(c, {window().folder() / "failed" / "oom.tscope"});
}

const profiler::AdviceView& view() { return *window().workspace().slots().advice.view(); }

/// Without a click.
GUI_TEST(advice, the_first_picture_says_what_happened_and_what_to_do) {
    open_failed(c);
    IM_CHECK(view().explanation.sentence.starts_with("Out of memory at train.py:14"));
    IM_CHECK_GT(view().cards.size(), size_t{1});
    IM_CHECK(c->WindowInfo("##verdict").Window != nullptr);
    const ImGuiWindow* advice = c->WindowInfo("//###advice").Window;
    IM_CHECK(advice != nullptr && advice->DockTabIsVisible);
    const auto& timeline = window().workspace().slots().timeline.view()->traces.front();
    IM_CHECK(timeline.failed_request.has_value());
    IM_CHECK_GT(timeline.limit_bytes, 0.0);
    window().take_picture(c, "advice_out_of_memory");
    window().ui().settings.dark = false;
    window().take_picture(c, "advice_out_of_memory_light");
    window().ui().settings.dark = true;
}

GUI_TEST(advice, a_card_is_opened_and_copied) {
    open_failed(c);
    const auto& cards = view().cards;
    const auto card = std::find_if(cards.begin(), cards.end(),
                                   [](const auto& one) { return one.id == "delete_after_use"; });
    IM_CHECK(card != cards.end());
    const std::string id = "//###advice/" + card->id;
    if (card == cards.begin())
        window().click(c, ("//###advice/" + cards[1].id + "/##card").c_str());
    window().click(c, (id + "/##card").c_str());
    window().click(c, (id + "/###copy").c_str());
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "del logits");
    // A trace that does not say how its program was started cannot run it again, and says so.
    c->ItemClick((id + "/###show_as_b").c_str());
    wait_until(c, [] { return !window().workspace().programs().busy(); });
    window().settle(c);
    const auto& verified = view().cards;
    const auto tried = std::find_if(verified.begin(), verified.end(),
                                    [](const auto& one) { return one.id == "delete_after_use"; });
    IM_CHECK(tried != verified.end());
    IM_CHECK(tried->problem.find("does not say how its program was started") != std::string::npos);
    window().take_picture(c, "advice_card");
}

GUI_TEST(advice, another_gpu_is_another_target) {
    open_failed(c);
    window().apply(c, {.advice = {.target = profiler::ExplainTarget{.gpu = "h100-sxm"}}});
    IM_CHECK_STR_EQ(view().explanation.target.gpu.c_str(), "h100-sxm");
    IM_CHECK(view().explanation.verdict != profiler::Verdict::kOutOfMemory);
    open_failed(c);  // begins with what it recorded
    IM_CHECK(view().explanation.verdict == profiler::Verdict::kOutOfMemory);
}

/// The plan of a model that is not open would answer what nobody asked.
GUI_TEST(advice, a_program_is_not_planned_as_a_model) {
    window().reset(c);
    window().open_files(c, {window().folder() / "programs" / "train.tscope"});
    for (const char* panel : {"planner", "frontier"}) {
        window().show_panel(c, panel);
        const std::string button = std::string("//###") + panel + "/###plan_built_in";
        IM_CHECK(c->ItemExists(button.c_str()));
    }
    IM_CHECK(window().workspace().slots().planner.view() == nullptr);
    IM_CHECK(window().workspace().slots().frontier.view() == nullptr);
    window().reset(c);
}

GUI_TEST(advice, the_dialog_runs_no_program_with_a_mistake_in_it) {
    window().reset(c);
    window().click(c, "//###timeline/###run_program");
    c->SetRef("//$FOCUSED");
    c->ItemInputValue("##form/##command", "python \"train.py");
    window().take_picture(c, "advice_run_dialog");
    IM_CHECK((c->ItemInfo("###start").ItemFlags & ImGuiItemFlags_Disabled) != 0);
    c->KeyPress(ImGuiKey_Escape);
    c->Yield(3);
}

}  // namespace
}  // namespace tests
