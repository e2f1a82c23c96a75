#include "app/commands/reports/csv.h"

#include "app/commands/reports/reports.h"
#include "profiler/analysis/step/call_site.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/memory_curve.h"
#include "profiler/analysis/step/phases_by_event.h"
#include "profiler/analysis/step/storage_names.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/trace/printable.h"
#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;

/// Writes one line of values after the other. A trace has millions of rows, too many for a
/// DataTable.
class CsvWriter {
public:
    template <typename... Cells>
    void row(const Cells&... cells) {
        bool first = true;
        (cell(cells, first), ...);
        text_.push_back('\n');
    }
    std::string take() { return std::move(text_); }

private:
    template <typename T>
    void cell(const T& value, bool& first) {
        if (!first) text_.push_back(',');
        first = false;
        if constexpr (std::is_convertible_v<T, std::string_view>) {
            text_ += csv_cell(value);
        } else {
            fmt::format_to(std::back_inserter(text_), "{}", value);
        }
    }

    std::string text_;
};

std::string_view op_name(const Trace& trace, Id<Op> op) {
    return op.valid() ? trace.text(trace.ops.get<&Op::name>(op)) : std::string_view();
}

std::string_view module_path_of(const Trace& trace, Id<Op> op) {
    if (!op.valid()) return {};
    const Id<ModulePath> module_path = trace.ops.get<&Op::module_path>(op);
    return module_path.valid() ? trace.text(trace.module_paths.get<&ModulePath::path>(module_path))
                               : std::string_view();
}

std::string_view device_name(const Trace& trace, Id<Device> device) {
    return device.valid() ? trace.text(trace.devices.get<&Device::name>(device))
                          : std::string_view();
}

/// The phase in which a block was allocated.
class PhaseOfBlock {
public:
    explicit PhaseOfBlock(const Trace& trace) : trace_(trace), phases_(trace) {
        for (std::size_t i = 0; i < trace.devices.size(); ++i) {
            const Id<Device> device(i);
            devices_.push_back(
                {num_start_events(trace, device), has_numbers_of_phases(trace, device)});
        }
        no_device_ = {num_start_events(trace), true};
    }

    /// Its step and its name; empty outside of phases. Phases have the event numbers of the
    /// profiled device; other devices may count for themselves.
    std::pair<std::string, std::string_view> operator()(const Allocation& block) const {
        const OfDevice& device = of_device(block.device);
        if (block.alloc_event < device.num_start_events) return {};
        if (device.has_numbers) return at(block.alloc_event);
        if (!block.op.valid()) return {};
        const Id<Phase> phase = trace_.ops.get<&Op::phase>(block.op);
        return phase.valid() ? text_of(trace_.phases[phase])
                             : std::pair<std::string, std::string_view>();
    }

private:
    std::pair<std::string, std::string_view> at(int64_t event) const {
        const auto phase = phases_.at(event);
        return phase ? text_of(*phase) : std::pair<std::string, std::string_view>();
    }

    struct OfDevice {
        int64_t num_start_events = 0;
        bool has_numbers = true;
    };
    const OfDevice& of_device(Id<Device> device) const {
        return device.valid() ? devices_[device.index()] : no_device_;
    }

    static std::pair<std::string, std::string_view> text_of(const Phase& phase) {
        return {phase.step.valid() ? fmt::to_string(phase.step.value) : std::string(),
                name_of(phase.kind)};
    }

    const Trace& trace_;
    std::vector<OfDevice> devices_;
    OfDevice no_device_;  // of blocks that name none
    PhasesByEvent phases_;
};

std::string allocations_csv(const Trace& trace, Id<Device> device) {
    CsvWriter csv;
    csv.row("alloc_event", "free_event", "alloc_ns", "free_ns", "requested_bytes", "block_bytes",
            "address", "step", "phase", "role", "tensor", "op", "scope", "freeing_op", "site",
            "role_source", "device");
    const PhaseOfBlock phase_of(trace);
    const std::vector<StringId> names = names_of_storages(trace);
    const CallSites sites(trace);
    const std::string_view role_source = has_inferred_categories(trace) ? "inferred" : "recorded";
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        if (device.valid() && a.device != device) continue;
        const bool known = a.storage.valid();
        const Category category =
            known ? trace.storages.get<&Storage::category>(a.storage) : Category::kUnknown;
        const auto [step, phase] = phase_of(a);
        csv.row(a.alloc_event, a.free_requested_event, a.alloc_ns, a.free_requested_ns,
                a.requested_bytes, a.block_bytes, a.address, step, phase, name_of(category),
                known ? trace.text(names[a.storage.index()]) : std::string_view(),
                op_name(trace, a.op), module_path_of(trace, a.op), op_name(trace, a.freeing_op),
                a.stack.valid() ? sites.of(a.stack) : std::string(),
                category == Category::kUnknown ? std::string_view() : role_source,
                device_name(trace, a.device));
    }
    return csv.take();
}

std::string ops_csv(const Trace& trace) {
    CsvWriter csv;
    csv.row("name", "scope", "phase", "step", "start_ns", "end_ns", "flop", "read_words",
            "written_words", "class");
    // Files of other tools do not say what ops compute and move.
    const bool is_counted = trace.run().source != Source::kImported;
    const auto counted = [&](int64_t count) {
        return is_counted ? fmt::to_string(count) : std::string();
    };
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        const Phase phase = op.phase.valid() ? trace.phases[op.phase] : Phase{};
        csv.row(trace.text(op.name), module_path_of(trace, Id<Op>(i)),
                op.phase.valid() ? name_of(phase.kind) : std::string_view(), phase.step.value,
                op.start_ns, op.end_ns, counted(op.flop), counted(op.read_words),
                counted(op.written_words), name_of(op.op_class));
    }
    return csv.take();
}

std::string kernels_csv(const Trace& trace, Id<Device> device) {
    CsvWriter csv;
    csv.row("name", "op", "scope", "stream", "start_ns", "end_ns", "grid", "block",
            "registers_per_thread", "shared_memory_bytes", "device");
    for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
        const Kernel kernel = trace.kernels[Id<Kernel>(i)];
        const Id<Device> of_kernel = kernel.stream.valid()
                                         ? trace.streams.get<&Stream::device>(kernel.stream)
                                         : Id<Device>();
        if (device.valid() && of_kernel != device) continue;
        csv.row(trace.text(kernel.name), op_name(trace, kernel.op),
                module_path_of(trace, kernel.op), kernel.stream.value, kernel.start_ns,
                kernel.end_ns, fmt::format("{}x{}x{}", kernel.grid_x, kernel.grid_y, kernel.grid_z),
                fmt::format("{}x{}x{}", kernel.block_x, kernel.block_y, kernel.block_z),
                kernel.registers_per_thread, kernel.shared_memory_bytes,
                device_name(trace, of_kernel));
    }
    return csv.take();
}

std::string steps_csv(const Trace& trace) {
    CsvWriter csv;
    csv.row("step", "start_ns", "end_ns", "step_time_ns", "peak_allocated_bytes", "loss");
    const MemoryCurve curve(trace);
    const bool is_predicted = trace.run().source == Source::kPredicted;
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
        const Step step = trace.steps[Id<Step>(i)];
        const auto whole_step = curve.sample(step.start_ns, step.end_ns, 1);
        csv.row(i, step.start_ns, step.end_ns, step.end_ns - step.start_ns,
                whole_step.empty() ? 0 : whole_step.front().allocated_bytes,
                is_predicted || std::isnan(step.loss) ? std::string() : fmt::to_string(step.loss));
    }
    return csv.take();
}

}  // namespace

std::string to_csv(const Trace& trace, CsvTable table, Id<Device> device) {
    switch (table) {
        case CsvTable::kAllocations:
            return allocations_csv(trace, device);
        case CsvTable::kLedger:
            return profiler::to_csv(data_table(ledger_columns(), build_ledger(trace).rows));
        case CsvTable::kOps:
            return ops_csv(trace);
        case CsvTable::kKernels:
            return kernels_csv(trace, device);
        case CsvTable::kSteps:
            return steps_csv(trace);
        case CsvTable::kSweep:
            return profiler::to_csv(sweep_data(sweep_curve(trace)));
    }
    return {};
}

}  // namespace app
