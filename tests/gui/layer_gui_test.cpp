// The Layer explorer in the real window, on the synthetic traces of test_traces.h.
#include "tests/gui/test_window.h"

#include "app/panels/layers/layer_ribbons.h"

#include <algorithm>

namespace tests {
namespace {

using profiler::LayerRibbon;
using profiler::LayerView;
using profiler::Presence;

void show(ImGuiTestContext* c, const std::vector<std::string>& recipes) {
    window().reset(c);
    window().ui().panels.layer = {};
    window().open(c, recipes);
    window().focus(c, "//###layer");
    c->Yield(20);  // until nothing fades
}

const LayerView& view() { return *window().workspace().slots().layers.view(); }

const LayerRibbon& first_ribbon(Presence presence) {
    const auto found = std::find_if(view().ribbons.begin(), view().ribbons.end(),
                                    [&](const auto& r) { return r.presence == presence; });
    return found == view().ribbons.end() ? view().ribbons.front() : *found;
}

ImVec2 point_on(const LayerRibbon& ribbon) {
    return app::middle_of(window().ui().panels.layer.picture, ribbon);
}

ImVec2 point_on_box(size_t column, bool in_backward) {
    const app::LayerPicture& picture = window().ui().panels.layer.picture;
    const auto& box = view().columns[column];
    const float half = picture.box_height / 2;
    return {picture.x((box.left + box.right) / 2),
            in_backward ? picture.bottom + half : picture.top - half};
}

GUI_TEST(layer, shows_a_layer_of_two_traces) {
    show(c, {"original", "tempo"});
    IM_CHECK_GT(static_cast<int>(view().columns.size()), 8);
    IM_CHECK(view().has_other);
    IM_CHECK(first_ribbon(Presence::kDisappeared).presence == Presence::kDisappeared);
    IM_CHECK_EQ(view().layers.first, view().num_layers / 2);
    IM_CHECK(window().ui().panels.layer.picture.has_room());
    window().take_picture(c, "layer");
}

GUI_TEST(layer, hovering_shows_a_tensor_and_a_call) {
    show(c, {"original", "tempo"});
    c->MouseMoveToPos(point_on(first_ribbon(Presence::kDisappeared)));
    window().settle(c);
    IM_CHECK(window().has_tooltip());
    window().take_picture(c, "layer_hover", true);
    c->MouseMoveToPos(point_on_box(1, true));
    c->Yield(3);
    IM_CHECK(window().has_tooltip());
    c->MouseTeleportToPos({2, 2});
    c->Yield(3);
    IM_CHECK(!window().has_tooltip());
}

GUI_TEST(layer, a_click_selects_the_tensor_everywhere) {
    show(c, {"original", "tempo"});
    const LayerRibbon ghost = first_ribbon(Presence::kDisappeared);
    window().click_at(c, point_on(ghost));
    const auto& tensor = window().workspace().selection().tensor;
    IM_CHECK(tensor.has_value());
    IM_CHECK(!tensor->in_b);
    IM_CHECK_EQ(tensor->storage.value, ghost.storage[0].value);
    window().take_picture(c, "layer_selected");
    // Again: nothing is selected.
    window().click_at(c, point_on(ghost));
    IM_CHECK(!window().workspace().selection().tensor.has_value());
}

GUI_TEST(layer, a_click_selects_the_call_everywhere) {
    show(c, {"original", "tempo"});
    window().click_at(c, point_on_box(0, false));
    const auto& call = window().workspace().selection().call;
    IM_CHECK(call.has_value());
    IM_CHECK_EQ(call->op.value, view().columns[0].forward.op[0].value);
}

GUI_TEST(layer, a_tensor_chosen_elsewhere_is_marked_here) {
    show(c, {"original", "tempo"});
    const LayerRibbon& ribbon = view().ribbons.front();
    const bool in_b = !ribbon.storage[0].valid();
    const auto& selection = window().workspace().selection();
    window().apply(
        c, {.selection = {.tensor = app::PickedTensor{in_b ? selection.b : selection.a,
                                                      ribbon.storage[in_b], ribbon.block[in_b]}}});
    IM_CHECK(profiler::ribbon_of(view(), in_b, selection.tensor->storage) == size_t{0});
}

GUI_TEST(layer, layers_are_chosen) {
    show(c, {"original", "tempo"});
    window().click(c, "//###layer/**/###all");
    IM_CHECK_EQ(view().layers.count(), view().num_layers);
    window().take_picture(c, "layer_all");
    window().click(c, "//###layer/**/###some");
    IM_CHECK_EQ(view().layers.count(), int64_t{3});
    window().click(c, "//###layer/**/###one");
    IM_CHECK_EQ(view().layers.count(), int64_t{1});
    // A and B may change; the layer stays.
    window().workspace().apply({.selection = {.layers = profiler::LayerRange{2, 2}}});
    window().workspace().swap_a_and_b();
    window().settle(c);
    IM_CHECK_EQ(view().layers.first, int64_t{2});
    window().workspace().clear_selection();
    window().settle(c);
    IM_CHECK_EQ(view().layers.first, view().num_layers / 2);
}

GUI_TEST(layer, a_switch_makes_an_open_trace_b) {
    show(c, {"original", "tempo", "tempo-packed"});
    IM_CHECK_STR_EQ(window().workspace().selection().label_b.name.c_str(), "tempo");
    const auto shown = window().ui().panels.layer.shown;
    window().ui().toasts = {};
    c->ItemClick("//###layer/**/masks/bit");
    // The picture is never empty: the old one stays until the new one is ready.
    IM_CHECK(window().ui().panels.layer.shown != nullptr);
    window().settle(c);
    IM_CHECK_STR_EQ(window().workspace().selection().label_b.name.c_str(), "tempo-packed");
    IM_CHECK(window().ui().panels.layer.shown != shown);
    IM_CHECK(window().ui().toasts.toasts.empty());
    window().click(c, "//###layer/**/masks/byte");
    IM_CHECK_STR_EQ(window().workspace().selection().label_b.name.c_str(), "tempo");
}

GUI_TEST(layer, a_recipe_that_is_not_open_says_what_to_do) {
    show(c, {"original", "tempo"});
    window().ui().toasts = {};
    window().workspace().take_notices();
    window().workspace().apply({.recipes = {.try_recipe = "gelu=recompute"}});
    // It is predicted. Here no virtual GPU is beside the program, and a sentence says so.
    IM_CHECK_STR_EQ(window().workspace().wanted_recipe().c_str(), "gelu=recompute");
    window().settle(c);
    IM_CHECK(window().workspace().wanted_recipe().empty());
    IM_CHECK(!window().ui().toasts.toasts.empty());
    IM_CHECK_STR_EQ(window().workspace().selection().label_b.name.c_str(), "tempo");
    // A's own recipe: A alone.
    window().apply(c, {.recipes = {.try_recipe = "original"}});
    IM_CHECK(window().workspace().selection().b == nullptr);
    window().take_picture(c, "layer_alone");
}

GUI_TEST(layer, shows_the_layers_of_a_program) {
    show(c, {"programs/train"});
    IM_CHECK_EQ(view().num_layers, int64_t{6});
    IM_CHECK_EQ(view().layers.first, int64_t{3});
    IM_CHECK_GT(static_cast<int>(view().columns.size()), 8);
    IM_CHECK_GT(static_cast<int>(view().ribbons.size()), 8);
    // All layers flow into the same columns: a path inside a layer does not tell its stack.
    const size_t columns = view().columns.size();
    window().apply(c, {.selection = {.layers = profiler::LayerRange{0, 5}}});
    IM_CHECK_EQ(view().columns.size(), columns);
    window().take_picture(c, "layer_program");
}

GUI_TEST(layer, a_file_without_a_step_is_explained) {
    window().reset(c);
    window().ui().panels.layer = {};
    window().workspace().open({window().folder() / "sweeps" / "tempo.tscope"});
    window().focus(c, "//###layer");
    IM_CHECK(window().workspace().slots().layers.view() == nullptr);
    window().take_picture(c, "layer_empty");
}

}  // namespace
}  // namespace tests
