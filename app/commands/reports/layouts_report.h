#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/view/kernels/layouts_view.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

/// `layouts` as a table for people, as JSON and as CSV; docs/commands.md lists the keys.
namespace app {

struct LayoutsDocument {
    std::string model;
    int64_t batch_size = 0;
    int64_t seq_len = 0;
    int64_t hidden_size = 0;
    int64_t num_heads = 0;
    int64_t intermediate_size = 0;
    std::string device;  // "cpu", "cuda"
    std::string chart;   // the file; empty: none
    std::string note;    // that the machine was busy; else empty
    profiler::LayoutsView view;

    /// "bert-large layer, B=2 S=128 H=1024"
    std::string workload() const;
};

/// Errors: a path whose extension is that of no chart. An empty path is no chart.
models::Result<void> check_layouts_chart(const std::string& path);
/// Draws `document.chart`. Errors: it cannot be written.
models::Result<void> write_layouts_chart(const LayoutsDocument& document);

void print_layouts(Output& output, const LayoutsDocument& document);
nlohmann::json layouts_json(const LayoutsDocument& document);
std::string layouts_csv(const LayoutsDocument& document);

}  // namespace app
