#include "profiler/view/layers/layer_layout.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace profiler {
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

}  // namespace

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

}  // namespace profiler
