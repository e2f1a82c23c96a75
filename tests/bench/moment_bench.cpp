// Measures the moment: how long after a switch is toggled the window shows another memory, another
// maximum batch and another headline. First a recipe that nobody has asked for, then recipes that
// were made ahead. Needs a display, a worker and a predicted trace:
// xvfb-run -a moment_bench TRACE, with TEMPOSCOPE_WORKER and TEMPOSCOPE_VIRTUAL_GPU_FOLDER.
#include "app/window/shell.h"

#include <GLFW/glfw3.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void draw_until(app::Shell& shell, const std::function<bool()>& holds) {
    while (!holds()) {
        glfwWaitEventsTimeout(0.001);
        shell.draw_frame();
    }
}

bool has_every_picture(const app::Workspace& workspace) {
    const app::Slots& slots = workspace.slots();
    return slots.timeline.view() && slots.ribbon.view() && slots.kernels.view() &&
           workspace.views().ledger.view() && workspace.comparison();
}

/// The recipe that a button of the Layer explorer leads to.
std::string recipe_of(const app::Workspace& workspace, const std::string& name,
                      const std::string& value) {
    for (const auto& row : workspace.slots().layers.view()->switches) {
        for (const auto& option : row.options) {
            if (row.name == name && option.name == value) return option.recipe;
        }
    }
    return {};
}

void measure(app::Shell& shell, const std::string& when, const std::string& name,
             const std::string& value) {
    app::Workspace& workspace = shell.ui().workspace;
    const std::string recipe = recipe_of(workspace, name, value);
    const std::string what = name + "=" + value + ", " + when;
    const auto start = Clock::now();
    workspace.apply({.recipes = {.try_recipe = recipe}});
    const int64_t first_frame = shell.frame_count();
    int64_t seen = first_frame;
    int empty = 0;
    double memory_ms = 0, batch_ms = 0, all_ms = 0;
    // The program's own loop: it draws only when there is something new.
    shell.run([&] {
        const bool is_new = std::exchange(seen, shell.frame_count()) < shell.frame_count();
        if (is_new && !has_every_picture(workspace)) ++empty;
        const app::DocumentPtr& b = workspace.selection().b;
        const bool is_there = seen > first_frame && b && b->canonical_recipe == recipe &&
                              has_every_picture(workspace);
        if (is_there && memory_ms == 0) memory_ms = ms_since(start);
        const bool says = workspace.headline().find("would fit") != std::string::npos;
        if (is_there && says && batch_ms == 0) batch_ms = ms_since(start);
        if (is_there && says && workspace.settled()) all_ms = ms_since(start);
        return all_ms > 0;
    });
    std::printf("%-44s memory %5.0f ms  batch %5.0f ms  all %5.0f ms  frames %3lld, %d without\n",
                what.c_str(), memory_ms, batch_ms, all_ms,
                static_cast<long long>(shell.frame_count() - first_frame), empty);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    auto shell = app::Shell::open({});
    if (!shell) return 1;
    app::Workspace& workspace = (*shell)->ui().workspace;
    workspace.open({argv[1]});
    glfwSwapInterval(0);
    draw_until(**shell, [&] { return workspace.selection().a && workspace.settled(); });
    for (const char* panel : {"compare", "timeline", "kernels", "ledger"}) {
        app::show_panel((*shell)->ui(), panel);
        draw_until(**shell, [&, n = 0]() mutable { return ++n > 4 && workspace.settled(); });
    }
    measure(**shell, "the first one", "gelu", "in_place");
    measure(**shell, "not made ahead", "layer_norm", "from_output");
    measure(**shell, "not made ahead", "gelu", "recompute");
    app::show_panel((*shell)->ui(), "layer");
    const auto start = Clock::now();
    draw_until(**shell, [&] { return workspace.is_made_ahead() && workspace.settled(); });
    std::printf("all that is one switch away made ahead in %.1f s\n", ms_since(start) / 1e3);
    measure(**shell, "made ahead", "gelu", "in_place");
    measure(**shell, "made ahead before", "gelu", "recompute");
    return 0;
}
