#pragma once

#include "profiler/analysis/step_index.h"
#include "profiler/tables/data_table.h"
#include "profiler/view/kernels/call_group.h"
#include "profiler/view/selected/tensor_life.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the Inspector says about the selected category, tensor or block, and about the selected
/// call, kernel or copy.
namespace profiler {

/// One of `storage` and `allocation` may be invalid.
struct InspectedTensor {
    std::size_t source = 0;
    Id<Storage> storage;
    Id<Allocation> allocation;

    friend bool operator==(const InspectedTensor&, const InspectedTensor&) = default;
};

struct InspectedCall {
    std::size_t source = 0;
    ActivityId id;

    friend bool operator==(const InspectedCall&, const InspectedCall&) = default;
};

struct InspectorRequest {
    Steps steps;
    std::optional<Category> category;
    std::optional<InspectedTensor> tensor;
    std::optional<InspectedCall> call;

    friend bool operator==(const InspectorRequest&, const InspectorRequest&) = default;
};

using InspectorRows = std::vector<std::pair<std::string, std::string>>;  // "made by", "aten::bmm"

/// When a tensor is held: "freed in", with a value for A and one for B, or for its only trace.
struct LifeRow {
    std::string label;
    std::vector<std::string> values;
};

struct TensorCard {
    std::string title;
    Category category = Category::kUnknown;
    InspectorRows rows;
    std::vector<LifeRow> life;
    TensorFate fate;  // unknown without B
};

struct CallCard {
    std::string title;
    InspectorRows rows;
    CallGroup group;           // all calls like it
    InspectorRows group_rows;  // "A", "72 calls, 8.23 ms together; median 112 µs, 98 to 140 µs"
};

/// What one trace holds of a category.
struct CategoryCard {
    InspectorRows rows;     // "at the peak", "1.2 GiB, 34 % of it"
    InspectorRows largest;  // at the peak: "probs in encoder.layer.3", "64 MiB"
};

struct InspectorView {
    std::vector<CategoryCard> category;  // by source
    std::optional<TensorCard> tensor;
    std::optional<CallCard> call;
};

/// O(n) for n rows of the traces.
InspectorView build_inspector_view(const InspectorRequest& request);

/// The symbols of a closed form with the numbers of a step: "e = 4 B, T = B·A·S² = 8·16·512²".
/// Empty for a formula without known symbols.
std::string resolve_symbols(const std::string& formula, const models::Workload& workload);

// ---- tables for other programs ------------------------------------------------------------------

/// Cards of the Inspector, row by row.
DataTable inspector_data(const InspectorView& view);

}  // namespace profiler
