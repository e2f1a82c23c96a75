#include "profiler/view/layers/layer_view.h"

#include "models/config/layer_recipes.h"
#include "models/config/switches.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/ledger_match.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/units.h"
#include "profiler/view/axis.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace profiler {
namespace {

using models::LayerRecipes;
using models::Recipe;

/// The same change in all layers and outside them.
template <typename Change>
std::string changed(const LayerRecipes& from, int64_t num_layers, Change change) {
    Recipe base = from.recipe;
    change(base);
    if (from.layers.empty()) return models::to_text(base);
    std::vector<Recipe> layers;
    for (int64_t layer = 0; layer < num_layers; ++layer) {
        Recipe recipe = models::recipe_of_layer(from, layer);
        change(recipe);
        layers.push_back(recipe);
    }
    return models::to_text(models::layer_recipes_of(base, layers));
}

template <typename Table>
RecipeSwitchRow row_of(const Table& table, const LayerRecipes& from, int64_t num_layers,
                       const std::array<std::optional<Recipe>, 2>& recipes) {
    RecipeSwitchRow row{.name = std::string(table.name), .options = {}};
    for (const auto& value : table.rows) {
        const bool is_chosen = (recipes[0] && (*recipes[0]).*table.member == value.value) ||
                               (recipes[1] && (*recipes[1]).*table.member == value.value);
        if (value.is.runs_on == models::RunsOn::kNowhere && !is_chosen) continue;
        for (std::size_t side = 0; side < 2; ++side) {
            if (recipes[side] && (*recipes[side]).*table.member == value.value) {
                row.chosen[side] = row.options.size();
            }
        }
        const auto change = [&](Recipe& recipe) {
            // Names of the tables themselves: they always parse.
            if (!value.is.needs.empty()) (void)models::apply_recipe_items(recipe, value.is.needs);
            recipe.*table.member = value.value;
        };
        row.options.push_back({std::string(value.is.name), std::string(value.is.phrase),
                               changed(from, num_layers, change)});
    }
    return row;
}

}  // namespace

std::vector<RecipeSwitchRow> recipe_switches(const Trace& first, const Trace* second,
                                             int64_t layer) {
    const auto workload = workload_of(first);
    const auto other = second ? workload_of(*second) : std::nullopt;
    if (!workload || (second && !other)) return {};
    return recipe_switches(*workload, other ? &*other : nullptr, layer);
}

std::vector<RecipeSwitchRow> recipe_switches(const models::Workload& first,
                                             const models::Workload* second, int64_t layer) {
    const LayerRecipes from = models::layer_recipes_of(second ? *second : first);
    std::array<std::optional<Recipe>, 2> recipes;
    recipes[0] = models::recipe_of_layer(models::layer_recipes_of(first), layer);
    if (second) recipes[1] = models::recipe_of_layer(models::layer_recipes_of(*second), layer);
    std::vector<RecipeSwitchRow> rows;
    models::for_each_switch([&](const auto& table) {
        if (table.is_for_step) return;
        rows.push_back(row_of(table, from, first.model.num_layers, recipes));
    });
    return rows;
}

namespace {

/// Share of the width that columns get by their bytes; the rest they share equally.
constexpr double kWidthByBytes = 0.3;
/// Share of a box's width that its ribbons may take.
constexpr double kFilled = 0.88;
/// Share of a box's width that the bar of its time may take.
constexpr double kLongestTimeBar = 0.75;
constexpr double kWidestGap = 0.003;

/// One end of a ribbon.
struct Port {
    std::size_t ribbon = 0;
    std::size_t opposite = 0;  // zone of the other end
    double bytes = 0;
};

/// Zone 0 is the layer before, zone i + 1 is column i.
struct Zone {
    double left = 0;
    double right = 0;
    std::vector<Port> out;  // at the top, by the place of the other end
    std::vector<Port> in;   // at the bottom
};

std::size_t zone_of(std::size_t column) { return column == kOutside ? 0 : column + 1; }

double sum_of(const std::vector<Port>& ports) {
    double sum = 0;
    for (const Port& port : ports) sum += port.bytes;
    return sum;
}

double bytes_of(const LayerRibbon& ribbon) {
    return static_cast<double>(std::max(ribbon.bytes[0], ribbon.bytes[1]));
}

std::vector<Zone> connect(const LayerView& view) {
    std::vector<Zone> zones(view.columns.size() + 1);
    for (std::size_t i = 0; i < view.ribbons.size(); ++i) {
        const LayerRibbon& ribbon = view.ribbons[i];
        const std::size_t from = zone_of(ribbon.producer), to = zone_of(ribbon.consumer);
        zones[from].out.push_back({i, to, bytes_of(ribbon)});
        zones[to].in.push_back({i, from, bytes_of(ribbon)});
    }
    for (Zone& zone : zones) {
        for (auto* ports : {&zone.out, &zone.in}) {
            std::stable_sort(ports->begin(), ports->end(),
                             [](const Port& a, const Port& b) { return a.opposite < b.opposite; });
        }
    }
    return zones;
}

/// Sets the edges of the zones; returns the width of a byte.
double size_zones(std::vector<Zone>& zones) {
    std::vector<double> bytes;
    double total = 0;
    for (const Zone& zone : zones) {
        bytes.push_back(std::max(sum_of(zone.out), sum_of(zone.in)));
        total += bytes.back();
    }
    const bool has_outside = !zones[0].out.empty() || !zones[0].in.empty();
    const double by_bytes = total > 0 ? kWidthByBytes : 0;
    const double places = static_cast<double>(zones.size() - 1) + (has_outside ? 1 : 0);
    double x = 0, byte_width = 1;
    for (std::size_t i = 0; i < zones.size(); ++i) {
        double width = 0;
        if (i > 0 || has_outside) width = (1 - by_bytes) / std::max(places, 1.0);
        if (total > 0) width += by_bytes * bytes[i] / total;
        zones[i].left = x;
        zones[i].right = x += width;
        if (bytes[i] > 0) byte_width = std::min(byte_width, kFilled * width / bytes[i]);
    }
    return byte_width;
}

/// Side by side in the middle of the zone.
template <typename SetEdges>
void place_ports(const Zone& zone, const std::vector<Port>& ports, double byte_width,
                 SetEdges set_edges) {
    if (ports.empty()) return;
    const double filled = sum_of(ports) * byte_width, width = zone.right - zone.left;
    const auto gaps = static_cast<double>(ports.size() - 1);
    const double gap = gaps > 0 ? std::clamp((0.96 * width - filled) / gaps, 0.0, kWidestGap) : 0;
    double x = zone.left + (width - filled - gap * gaps) / 2;
    for (const Port& port : ports) {
        set_edges(port.ribbon, x, x + port.bytes * byte_width);
        x += port.bytes * byte_width + gap;
    }
}

/// One scale for the bars of all boxes: as wide as it may be while each bar fits into its box.
void size_time_bars(LayerView& view) {
    double width_per_ns = std::numeric_limits<double>::max();
    for (const LayerColumn& column : view.columns) {
        const int64_t longest_ns = std::max(column.forward.time_ns, column.backward.time_ns);
        if (longest_ns <= 0) continue;
        width_per_ns = std::min(width_per_ns, kLongestTimeBar * (column.right - column.left) /
                                                  static_cast<double>(longest_ns));
    }
    for (LayerColumn& column : view.columns) {
        for (LayerNode* node : {&column.forward, &column.backward}) {
            if (node->time_ns > 0) {
                node->time_width = width_per_ns * static_cast<double>(node->time_ns);
            }
        }
    }
}

/// Sets the horizontal positions. A column is as wide as its share of the columns, and wider where
/// many bytes start or end.
void lay_out(LayerView& view) {
    std::vector<Zone> zones = connect(view);
    const double byte_width = size_zones(zones);
    view.outside_right = zones[0].right;
    for (std::size_t i = 0; i < view.columns.size(); ++i) {
        view.columns[i].left = zones[i + 1].left;
        view.columns[i].right = zones[i + 1].right;
    }
    size_time_bars(view);
    for (const Zone& zone : zones) {
        place_ports(zone, zone.out, byte_width, [&](std::size_t i, double left, double right) {
            view.ribbons[i].top_left = left;
            view.ribbons[i].top_right = right;
        });
        place_ports(zone, zone.in, byte_width, [&](std::size_t i, double left, double right) {
            view.ribbons[i].bottom_left = left;
            view.ribbons[i].bottom_right = right;
        });
    }
}

/// A name from a file: control characters become spaces, and the middle of a long name is left out.
std::string shown(std::string_view name) {
    constexpr double kMostCharacters = 60;
    std::string text(name);
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    }
    return fit_label(text, kMostCharacters,
                     [](std::string_view part) { return static_cast<double>(part.size()); });
}

/// One trace of the request with its flow.
struct Side {
    const StepIndex* source = nullptr;
    LayerFlow flow;
    std::vector<std::size_t> merged;  // column of the view for each column of the flow
    bool has_times = false;

    const Trace& trace() const { return source->trace(); }
};

Side make_side(const StepIndex& source, const LayerRange& layers) {
    Side side{.source = &source, .flow = {}, .merged = {}};
    side.flow = build_layer_flow(source.trace(), source.ledger(), layers);
    side.has_times = source.trace().run().time_basis != TimeBasis::kEventOrder &&
                     side.flow.forward_ns + side.flow.backward_ns > 0;
    return side;
}

// ---- columns --------------------------------------------------------------------------------

/// The columns of the first flow. A column of the second flow alone stands after its predecessor.
std::vector<std::string> merge_keys(const std::vector<Side>& sides) {
    std::vector<std::string> keys;
    for (const Side& side : sides) {
        auto last = keys.end();
        for (const FlowColumn& column : side.flow.columns) {
            const auto found = std::ranges::find(keys, column.key);
            if (found != keys.end()) {
                last = found;
            } else if (last == keys.end()) {
                last = keys.insert(&side == &sides.front() ? keys.end() : keys.begin(), column.key);
            } else {
                last = keys.insert(last + 1, column.key);
            }
        }
    }
    return keys;
}

void fill_node(LayerNode& node, const Side& side, const FlowNode& from, bool is_second,
               int64_t first_ns) {
    if (!from.op.valid()) return;
    node.exists = true;
    node.op[is_second] = from.op;
    node.op_class = from.op_class;
    node.calls = shown(fmt::format("{}", fmt::join(from.calls, ", ")));
    node.recomputed_text.clear();
    if (from.recomputes) {
        node.recomputed_text = side.has_times ? format_duration(from.recomputed_ns) : "again";
    }
    if (!side.has_times || from.duration_ns == 0) return;
    node.time_text = format_duration(from.duration_ns);
    node.time_ns = from.duration_ns;
    const int64_t more_ns = from.duration_ns - first_ns;
    if (!is_second || !node.op[0].valid() || std::abs(more_ns) * 50 <= first_ns) return;
    node.difference_text = with_sign(more_ns, format_duration(std::abs(more_ns)));
}

void set_presence(LayerNode& node, bool has_other) {
    if (!node.exists || !has_other) return;
    if (!node.op[1].valid()) node.presence = Presence::kDisappeared;
    if (!node.op[0].valid()) node.presence = Presence::kAdded;
}

void add_columns(LayerView& view, std::vector<Side>& sides) {
    const std::vector<std::string> keys = merge_keys(sides);
    view.columns.resize(keys.size());
    std::vector<std::array<int64_t, 2>> first_ns(keys.size());
    for (Side& side : sides) {
        const bool is_second = &side != &sides.front();
        for (const FlowColumn& from : side.flow.columns) {
            const auto index =
                static_cast<std::size_t>(std::ranges::find(keys, from.key) - keys.begin());
            side.merged.push_back(index);
            LayerColumn& column = view.columns[index];
            if (!is_second) first_ns[index] = {from.forward.duration_ns, from.backward.duration_ns};
            column.title = shown(from.title);
            column.path = shown(from.path);
            fill_node(column.forward, side, from.forward, is_second, first_ns[index][0]);
            fill_node(column.backward, side, from.backward, is_second, first_ns[index][1]);
        }
        for (FlowPlace place : side.flow.places) {
            place.column = side.merged[place.column];
            view.places[is_second].push_back(place);
        }
    }
    for (LayerColumn& column : view.columns) {
        set_presence(column.forward, view.has_other);
        set_presence(column.backward, view.has_other);
    }
}

// ---- ribbons --------------------------------------------------------------------------------

std::string call_text(const Side& side, Id<Op> op) {
    if (!op.valid()) return {};
    return shown(short_call_name(name_of_call(side.trace(), op)));
}

void add_tensor(LayerRibbon& ribbon, const Side& side, const FlowTensor& tensor, bool is_second,
                const LayerRange& layers) {
    const auto column = [&](std::size_t i) { return i == kOutside ? kOutside : side.merged[i]; };
    ribbon.name = tensor.name.empty() ? "unnamed" : shown(tensor.name);
    ribbon.category = tensor.category;
    ribbon.bytes[is_second] = tensor.size_bytes;
    ribbon.producer = column(tensor.producer);
    ribbon.consumer = column(tensor.consumer == kOutside ? tensor.producer : tensor.consumer);
    ribbon.consumer_known = tensor.consumer_op.valid() && tensor.consumer != kOutside;
    ribbon.also.clear();
    for (const std::size_t i : tensor.also) ribbon.also.push_back(column(i));
    ribbon.storages[is_second] = tensor.storages;
    std::ranges::sort(ribbon.storages[is_second]);
    ribbon.storage[is_second] = tensor.storages.front();
    ribbon.block[is_second] = tensor.blocks.front();
    const auto per_layer = static_cast<int64_t>(tensor.storages.size());
    ribbon.details = {
        {"shape", shown(tensor.shape) + "  " + std::string(name_of(tensor.dtype))},
        {"made by", call_text(side, tensor.maker) +
                        (tensor.producer == kOutside ? ", outside the layer" : "")},
        {"kept by", shown(fmt::format("{}", fmt::join(tensor.kept_by, ", ")))},
        {"released by", ribbon.consumer_known ? call_text(side, tensor.consumer_op) : "not known"},
        {"module", shown(tensor.path)},
        {"layers", layers.count() > 1 ? fmt::format("{} of {}", per_layer, layers.count()) : ""}};
}

void finish(LayerRibbon& ribbon, bool has_other) {
    const auto [first, second] = ribbon.bytes;
    const bool in_first = ribbon.storage[0].valid(), in_second = ribbon.storage[1].valid();
    if (has_other && !in_second) {
        ribbon.presence = Presence::kDisappeared;
        ribbon.size_text = "-" + format_bytes(first);
        ribbon.details.emplace_back("A", format_exact_bytes(first));
        ribbon.details.emplace_back("B", "does not save it");
    } else if (has_other && !in_first) {
        ribbon.presence = Presence::kAdded;
        ribbon.size_text = "+" + format_bytes(second);
        ribbon.details.emplace_back("A", "does not save it");
        ribbon.details.emplace_back("B", format_exact_bytes(second));
    } else if (has_other && first != second) {
        ribbon.presence = Presence::kChanged;
        ribbon.size_text = fmt::format("{} to {}", format_bytes(first), format_bytes(second));
        ribbon.details.emplace_back("A", format_exact_bytes(first));
        ribbon.details.emplace_back("B", format_exact_bytes(second));
    } else {
        ribbon.size_text = format_bytes(first);
        ribbon.details.emplace_back(has_other ? "A and B" : "bytes", format_exact_bytes(first));
    }
}

/// The tensors as rows that match_ledgers can pair. Borrows their texts.
Ledger as_ledger(const LayerFlow& flow) {
    Ledger ledger;
    for (const FlowTensor& tensor : flow.tensors) {
        LedgerRow row;
        row.module_path = tensor.path;
        row.tensor = tensor.name;
        row.size_bytes = tensor.size_bytes;
        row.layer = 0;
        ledger.rows.push_back(row);
    }
    return ledger;
}

/// A ribbon for each tensor of the first flow, then for each tensor of the second flow alone. A
/// tensor of both flows is drawn as in the second.
void add_ribbons(LayerView& view, const std::vector<Side>& sides) {
    for (const FlowTensor& tensor : sides[0].flow.tensors) {
        add_tensor(view.ribbons.emplace_back(), sides[0], tensor, false, view.layers);
    }
    if (view.has_other) {
        const Side& second = sides[1];
        std::vector<std::size_t> ribbon_of_row(second.flow.tensors.size(), kNoRow);
        const auto partner = match_ledgers(as_ledger(sides[0].flow), as_ledger(second.flow));
        for (std::size_t i = 0; i < partner.size(); ++i) {
            if (partner[i] != kNoRow) ribbon_of_row[partner[i]] = i;
        }
        for (std::size_t i = 0; i < ribbon_of_row.size(); ++i) {
            const bool is_new = ribbon_of_row[i] == kNoRow;
            LayerRibbon& ribbon =
                is_new ? view.ribbons.emplace_back() : view.ribbons[ribbon_of_row[i]];
            add_tensor(ribbon, second, second.flow.tensors[i], true, view.layers);
        }
    }
    for (LayerRibbon& ribbon : view.ribbons) finish(ribbon, view.has_other);
    std::ranges::stable_sort(view.ribbons, [](const auto& a, const auto& b) {
        return std::max(a.bytes[0], a.bytes[1]) > std::max(b.bytes[0], b.bytes[1]);
    });
}

/// Takes out tensors without a place, and joins the smallest where there are too many.
void thin_out(LayerView& view) {
    int64_t lost_bytes = 0, lost = 0;
    std::erase_if(view.ribbons, [&](const LayerRibbon& ribbon) {
        const bool no_place = ribbon.consumer == kOutside;
        lost += no_place;
        if (no_place) lost_bytes += std::max(ribbon.bytes[0], ribbon.bytes[1]);
        return no_place;
    });
    if (lost > 0) {
        view.notes.push_back(fmt::format("{} saved tensors, {}, belong to no call in the picture",
                                         format_count(lost), format_bytes(lost_bytes)));
    }
    if (view.ribbons.size() <= LayerView::kMostRibbons) return;
    std::map<std::tuple<std::size_t, std::size_t, Presence>, std::size_t> joined;
    std::vector<LayerRibbon> kept(view.ribbons.begin(),
                                  view.ribbons.begin() + LayerView::kMostRibbons);
    std::map<std::size_t, int64_t> counts;
    for (std::size_t i = kept.size(); i < view.ribbons.size(); ++i) {
        LayerRibbon& ribbon = view.ribbons[i];
        const auto [entry, is_new] = joined.emplace(
            std::tuple(ribbon.producer, ribbon.consumer, ribbon.presence), kept.size());
        ++counts[entry->second];
        if (is_new) {
            kept.push_back(std::move(ribbon));
            continue;
        }
        LayerRibbon& sum = kept[entry->second];
        for (const std::size_t side : {0, 1}) {
            sum.bytes[side] += ribbon.bytes[side];
            auto& storages = sum.storages[side];
            storages.insert(storages.end(), ribbon.storages[side].begin(),
                            ribbon.storages[side].end());
            std::ranges::sort(storages);
        }
    }
    for (const auto& [index, count] : counts) {
        if (count == 1) continue;
        kept[index].name = fmt::format("{} small tensors", format_count(count));
        kept[index].details.clear();
        finish(kept[index], view.has_other);
    }
    view.ribbons = std::move(kept);
}

// ---- the rest -------------------------------------------------------------------------------

void add_times(LayerView& view, const std::vector<Side>& sides) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
        const Side& side = sides[i];
        if (!side.has_times) continue;
        view.forward_text[i] = format_duration(side.flow.forward_ns);
        view.backward_text[i] = format_duration(side.flow.backward_ns);
    }
    const bool both = view.has_other && sides[0].has_times && sides[1].has_times;
    if (both) view.box_times_text = "boxes show B";
    const Side& last = sides.back();
    if (last.has_times && last.flow.recomputed_ns > 0) {
        view.recomputed_text = format_duration(last.flow.recomputed_ns) + " recomputed";
    }
    for (const Side& side : sides) {
        if (side.flow.columns_left_out == 0) continue;
        view.notes.push_back(
            fmt::format("{} modules that take little time are left out",
                        format_count(static_cast<int64_t>(side.flow.columns_left_out))));
        break;
    }
}

LayerRange within(LayerRange layers, int64_t num_layers) {
    const int64_t last = std::max<int64_t>(num_layers - 1, 0);
    layers.first = std::clamp<int64_t>(layers.first, 0, last);
    layers.last = std::clamp<int64_t>(layers.last, layers.first, last);
    return layers;
}

}  // namespace

LayerView build_layer_view(const LayerRequest& request) {
    LayerView view;
    const Steps& steps = request.steps;
    if (!steps.a) return view;
    view.has_other = steps.b != nullptr;
    view.num_layers = std::max<int64_t>(steps.a->trace().run().num_layers, 0);
    view.layers = within(request.layers, view.num_layers);
    std::vector<Side> sides;
    for (const StepIndex& step : steps.all()) sides.push_back(make_side(step, view.layers));
    add_columns(view, sides);
    add_ribbons(view, sides);
    thin_out(view);
    lay_out(view);
    view.figures = layer_figures(request, view.layers, view.num_layers);
    add_times(view, sides);
    view.switches =
        recipe_switches(steps.a->trace(), steps.b ? &steps.b->trace() : nullptr, view.layers.first);
    return view;
}

std::optional<std::size_t> ribbon_of(const LayerView& view, bool in_b, Id<Storage> storage) {
    if (!storage.valid()) return std::nullopt;
    for (std::size_t i = 0; i < view.ribbons.size(); ++i) {
        const auto& storages = view.ribbons[i].storages[in_b];
        if (std::ranges::binary_search(storages, storage)) return i;
    }
    return std::nullopt;
}

FlowPlace place_of(const LayerView& view, bool in_b, Id<Op> op) {
    const auto& places = view.places[in_b];
    const auto found = std::lower_bound(places.begin(), places.end(), op,
                                        [](const FlowPlace& p, Id<Op> id) { return p.op < id; });
    return found != places.end() && found->op == op ? *found : FlowPlace{op};
}

namespace {

Cell column_title(const LayerView& view, std::size_t column) {
    return column == kOutside ? Cell() : Cell(view.columns[column].path);
}

}  // namespace

DataTable ribbons_data(const LayerView& view) {
    DataTable table{.columns = {"tensor", "role", "made_in", "needed_in", "a_bytes", "b_bytes"}};
    for (const LayerRibbon& ribbon : view.ribbons) {
        table.rows.push_back({ribbon.name, name_of(ribbon.category),
                              column_title(view, ribbon.producer),
                              column_title(view, ribbon.consumer), ribbon.bytes[0],
                              view.has_other ? Cell(ribbon.bytes[1]) : Cell()});
    }
    return table;
}

}  // namespace profiler
