#include "profiler/view/kernels/kernels_view.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace profiler {
namespace {

/// A time window and the width of its pixels.
struct Pixels {
    double start_ns = 0;
    double end_ns = 0;
    double width_ns = 0;

    /// The end of the pixel that holds `time_ns`. Pixels start on multiples of their width, so that
    /// blocks do not change while the window pans.
    double end_of(double time_ns) const { return (std::floor(time_ns / width_ns) + 1) * width_ns; }
};

class RowBuilder {
public:
    RowBuilder(const StepIndex& source, const CallRow& row, const TimeMap& map,
               const Pixels& pixels, const MarkedSpans* marked)
        : trace_(source.trace()),
          calls_(source.calls()),
          row_(row),
          map_(map),
          pixels_(pixels),
          marked_(marked) {}

    CallBlockRow build() {
        std::size_t i = row_.first_ending_after(own(pixels_.start_ns));
        const std::size_t end = row_.first_starting_at(own(pixels_.end_ns));
        while (i < end) i = is_wide(i) ? add(i, i + 1) : add(i, end_of_narrow(i, end));
        return std::move(blocks_);
    }

private:
    int64_t own(double shared_ns) const { return std::llround(map_.to_own(shared_ns)); }
    double shared(int64_t own_ns) const { return map_.to_shared(static_cast<double>(own_ns)); }
    bool is_wide(std::size_t i) const {
        return shared(row_.end_ns[i]) - shared(row_.start_ns[i]) >= 2 * pixels_.width_ns;
    }

    /// The index after the last narrow span that begins in the same pixel as span `i`.
    std::size_t end_of_narrow(std::size_t i, std::size_t end) const {
        const double pixel_end = pixels_.end_of(shared(row_.start_ns[i]));
        std::size_t last = std::clamp(row_.first_starting_at(own(pixel_end)), i + 1, end);
        // Spans of a row do not overlap: only the last one can be wide.
        if (last > i + 1 && is_wide(last - 1)) --last;
        return last;
    }

    std::size_t add(std::size_t first, std::size_t end) {
        const int64_t start_ns = row_.start_ns[first], end_ns = row_.end_ns[end - 1];
        const int64_t busy_ns =
            row_.busy_ns[end - 1] - row_.busy_ns[first] + end_ns - row_.start_ns[end - 1];
        const CallId id = row_.ids[first];
        CallBlock block{.start_ns = shared(start_ns),
                        .end_ns = shared(end_ns),
                        .id = id,
                        .count = static_cast<int64_t>(end - first),
                        .call_class = class_of(first, end),
                        .op = op_of(trace_, id),
                        .is_marked = is_marked(first, end)};
        if (block.op.valid()) block.forward = trace_.ops.get<&Op::forward>(block.op);
        if (block.count == 1) {
            block.label = label_of(id, block);
        } else if (end_ns > start_ns) {
            block.busy = static_cast<double>(busy_ns) / static_cast<double>(end_ns - start_ns);
        }
        blocks_.blocks.push_back(std::move(block));
        return end;
    }

    /// The class that takes the most time. Of very many spans, evenly spread ones are asked.
    CallClass class_of(std::size_t first, std::size_t end) const {
        constexpr std::size_t kMostAsked = 64;
        const std::size_t stride = (end - first - 1) / kMostAsked + 1;
        std::array<int64_t, kCallClassNames.size()> time_ns{};
        for (std::size_t i = first; i < end; i += stride) {
            const auto of = calls_.class_of(trace_, row_.ids[i]);
            time_ns[static_cast<std::size_t>(of)] += row_.end_ns[i] - row_.start_ns[i] + 1;
        }
        return static_cast<CallClass>(std::ranges::max_element(time_ns) - time_ns.begin());
    }

    bool is_marked(std::size_t first, std::size_t end) const {
        const auto is_one = [&](CallId id) { return marked_->contains(id); };
        const auto ids = row_.ids.begin();
        return !marked_ || std::any_of(ids + static_cast<std::ptrdiff_t>(first),
                                       ids + static_cast<std::ptrdiff_t>(end), is_one);
    }

    /// "dense  AddmmBackward0" for a node of backward: its module tells it from the others.
    std::string label_of(CallId id, const CallBlock& block) const {
        std::string label = short_name(name_of(trace_, id));
        if (id.kind != CallKind::kOp || !block.forward.valid()) return label;
        const Id<ModulePath> module = module_of(trace_, block.forward);
        if (!module.valid() || label.find("Backward") == label.npos) return label;
        const std::string_view path = path_of_module(trace_, module);
        return fmt::format("{}  {}", path.substr(path.rfind('.') + 1), label);
    }

    const Trace& trace_;
    const Calls& calls_;
    const CallRow& row_;
    const TimeMap& map_;
    const Pixels& pixels_;
    const MarkedSpans* const marked_;  // null: nothing is marked
    CallBlockRow blocks_;
};

KernelsTrace build_trace(const StepIndex& source, const TimeMap& map, const Pixels& pixels,
                         const MarkedSpans* marked) {
    KernelsTrace view;
    for (const CallLane& lane : source.calls().lanes()) {
        KernelsLane& to =
            view.lanes.emplace_back(KernelsLane{lane.name, lane.is_stream, {}, lane.left_out});
        for (const CallRow& row : lane.rows) {
            to.rows.push_back(RowBuilder(source, row, map, pixels, marked).build());
        }
    }
    return view;
}

void find_classes(KernelsView& view) {
    std::array<bool, kCallClassNames.size()> occurs{};
    for (const KernelsTrace& trace : view.traces) {
        for (const KernelsLane& lane : trace.lanes) {
            for (const CallBlockRow& row : lane.rows) {
                for (const CallBlock& block : row.blocks) {
                    occurs[static_cast<std::size_t>(block.call_class)] = true;
                }
            }
        }
    }
    for (std::size_t i = 0; i < occurs.size(); ++i) {
        if (occurs[i]) view.classes.push_back(static_cast<CallClass>(i));
    }
}

// ---- demangled names ------------------------------------------------------------------------

/// Length of the return type of "void f<...>(...)" or "std::enable_if<!(false), void>::type
/// f<...>(...)": it ends at the last space before the arguments that is not inside brackets.
std::size_t length_of_return_type(std::string_view name) {
    std::size_t length = 0;
    for (std::size_t i = 0, depth = 0; i < name.size(); ++i) {
        if (name[i] == '(' && depth == 0) break;
        if (name[i] == '<' || name[i] == '(') ++depth;
        if ((name[i] == '>' || name[i] == ')') && depth > 0) --depth;
        if (name[i] == ' ' && depth == 0) length = i + 1;
    }
    return length;
}

/// The last name: "CUDAFunctor_add" for "at::native::CUDAFunctor_add<float>, ...".
std::string_view leaf_of(std::string_view name) {
    const std::string_view qualified = name.substr(0, name.find_first_of("<(,>"));
    const std::size_t colons = qualified.rfind("::");
    return colons == qualified.npos ? qualified : qualified.substr(colons + 2);
}

/// Kernels of PyTorch and CUTLASS that run what one of their template arguments names.
bool is_wrapper(std::string_view leaf) {
    constexpr std::array<std::string_view, 13> kWrappers{
        "Kernel",         "Kernel2",       "elementwise_kernel", "vectorized_elementwise_kernel",
        "reduce_kernel",  "ReduceOp",      "func_wrapper_t",     "unrolled_elementwise_kernel",
        "AUnaryFunctor",  "BUnaryFunctor", "BinaryFunctor",      "gpu_kernel_impl_nocast",
        "gpu_kernel_impl"};
    return std::ranges::find(kWrappers, leaf) != kWrappers.end();
}

/// The first template argument with a qualified name, which is neither a number nor a type of
/// elements. If there is none, the first argument.
std::string_view telling_argument(std::string_view name) {
    const std::size_t open = name.find('<');
    if (open == name.npos) return {};
    const std::string_view arguments = name.substr(open + 1);
    for (std::size_t start = 0, depth = 0, i = 0; i < arguments.size(); ++i) {
        const bool is_element_type = arguments.substr(start).starts_with("c10::");
        if (arguments.substr(i).starts_with("::") && !is_element_type) {
            return arguments.substr(start);
        }
        if (arguments[i] == '<') ++depth;
        if (arguments[i] == '>' && depth-- == 0) break;
        if (arguments[i] == ',' && depth == 0) start = i + 2;  // ", "
    }
    return arguments;
}

// ---- one span as text ----------------------------------------------------------------------

class Readout {
public:
    Readout(const StepIndex& source, CallId id) : trace_(source.trace()), source_(source) {
        readout_.title = name_of(trace_, id);
        const auto row = static_cast<std::size_t>(id.row);
        switch (id.kind) {
            case CallKind::kOp:
                add_op_times(Id<Op>(row));
                break;
            case CallKind::kKernel:
                add_kernel(trace_.kernels[Id<Kernel>(row)]);
                break;
            case CallKind::kMemcpy:
                add_memcpy(trace_.memcpys[Id<Memcpy>(row)]);
                break;
        }
        const Id<Op> op = op_of(trace_, id);
        if (!op.valid()) return;
        if (id.kind != CallKind::kOp) add("op", name_of_call(trace_, op));
        add_op(trace_.ops[op], op);
    }

    KernelsReadout take() { return std::move(readout_); }

private:
    void add(std::string label, std::string_view value) {
        if (!value.empty()) readout_.rows.emplace_back(std::move(label), value);
    }

    void add_rate(int64_t flop, int64_t time_ns) {
        if (flop <= 0) return;
        add("flop", format_count(flop));
        // flop per ns = Gflop/s
        if (time_ns <= 0) return;
        const double rate = static_cast<double>(flop) / static_cast<double>(time_ns);
        add("rate", rate < 1000 ? fmt::format("{:.3g} Gflop/s", rate)
                                : fmt::format("{:.3g} Tflop/s", rate / 1000));
    }

    void add_op_times(Id<Op> id) {
        const Op op = trace_.ops[id];
        add("time", format_duration(op.end_ns - op.start_ns));
    }

    void add_kernel(const Kernel& kernel) {
        add("time", format_duration(kernel.end_ns - kernel.start_ns));
        if (kernel.grid_x > 0) {
            add("grid", fmt::format("{} x {} x {}", kernel.grid_x, kernel.grid_y, kernel.grid_z));
            add("block",
                fmt::format("{} x {} x {}", kernel.block_x, kernel.block_y, kernel.block_z));
        }
        if (kernel.registers_per_thread > 0) {
            add("registers", fmt::format("{} a thread", kernel.registers_per_thread));
        }
        if (kernel.shared_memory_bytes > 0) {
            add("shared memory", format_bytes(kernel.shared_memory_bytes));
        }
    }

    void add_memcpy(const Memcpy& copy) {
        const int64_t time_ns = copy.end_ns - copy.start_ns;
        add("time", format_duration(time_ns));
        add("bytes", format_bytes(copy.size_bytes));
        if (time_ns > 0) {
            add("rate", fmt::format("{:.3g} GB/s", static_cast<double>(copy.size_bytes) /
                                                       static_cast<double>(time_ns)));
        }
    }

    void add_op(const Op& op, Id<Op> id) {
        if (op.module_path.valid()) {
            add("module", path_of_module(trace_, op.module_path));
        }
        if (op.phase.valid())
            add("phase", profiler::name_of(trace_.phases.get<&Phase::kind>(op.phase)));
        if (op.forward.valid()) {
            add("gradient of", name_of_call(trace_, op.forward));
        }
        int64_t kernels_ns = 0;
        const auto kernels = source_.calls().kernels_of(id);
        for (const Id<Kernel> kernel : kernels) {
            kernels_ns += trace_.kernels.get<&Kernel::end_ns>(kernel) -
                          trace_.kernels.get<&Kernel::start_ns>(kernel);
        }
        if (!kernels.empty()) {
            add("kernels", fmt::format("{}, {}", kernels.size(), format_duration(kernels_ns)));
        }
        add_rate(op.flop, kernels.empty() ? op.end_ns - op.start_ns : kernels_ns);
        if (op.read_words + op.written_words > 0) {
            add("elements", fmt::format("{} read, {} written", format_count(op.read_words),
                                        format_count(op.written_words)));
        }
        int64_t allocated_bytes = 0;
        const auto allocations = source_.calls().allocations_of(id);
        for (const Id<Allocation> allocation : allocations) {
            allocated_bytes += trace_.allocations.get<&Allocation::requested_bytes>(allocation);
        }
        if (!allocations.empty()) {
            add("allocates", fmt::format("{} in {}", format_bytes(allocated_bytes),
                                         allocations.size() == 1
                                             ? std::string("one tensor")
                                             : fmt::format("{} tensors", allocations.size())));
        }
    }

    const Trace& trace_;
    const StepIndex& source_;
    KernelsReadout readout_;
};

}  // namespace

KernelsView build_kernels_view(const KernelsRequest& request) {
    KernelsView view;
    if (!is_drawable(request.start_ns, request.end_ns, request.width_px)) return view;
    const Pixels pixels{request.start_ns, request.end_ns,
                        (request.end_ns - request.start_ns) / request.width_px};
    for (const StepIndex& source : request.steps.all()) {
        const std::size_t index = view.traces.size();
        const TimeMap& map = map_of(request.alignment, index);
        const bool has_marks = request.marks && index < request.marks->traces.size();
        view.traces.push_back(
            build_trace(source, map, pixels, has_marks ? &request.marks->traces[index] : nullptr));
        view.has_kernels |= !source.trace().kernels.empty();
    }
    find_classes(view);
    if (request.alignment) view.alignment = request.alignment->used;
    return view;
}

std::string short_name(std::string_view name) {
    std::string plain(name);
    constexpr std::string_view kAnonymous = "(anonymous namespace)::";
    for (std::size_t at = 0; (at = plain.find(kAnonymous)) != plain.npos;) {
        plain.erase(at, kAnonymous.size());
    }
    std::string_view rest = plain;
    if (rest.starts_with(kEngineCall)) rest.remove_prefix(kEngineCall.size());
    if (rest.find_first_of("<(") == rest.npos) return std::string(rest);  // "aten::addmm"
    rest.remove_prefix(length_of_return_type(rest));
    while (is_wrapper(leaf_of(rest))) {
        const std::string_view inner = telling_argument(rest);
        if (inner.empty()) break;
        rest = inner;
    }
    const std::string_view leaf = leaf_of(rest);
    return std::string(leaf.empty() ? name : leaf);
}

KernelsReadout read_kernels(const StepIndex& source, CallId id) {
    if (!id.valid()) return {};
    return Readout(source, id).take();
}

namespace {

const char* kind_of(CallKind kind) {
    constexpr std::array kKinds{"call", "kernel", "copy"};
    return kKinds[static_cast<std::size_t>(kind)];
}

std::string module_of(const Trace& trace, CallId id) {
    if (id.kind != CallKind::kOp) return {};
    const Id<ModulePath> path = trace.ops.get<&Op::module_path>(Id<Op>(id.row));
    if (!path.valid()) return {};
    return std::string(path_of_module(trace, path));
}

}  // namespace

DataTable kernels_data(const StepIndex& step, int64_t start_ns, int64_t end_ns, std::size_t most) {
    DataTable table{
        .columns = {"lane", "kind", "class", "name", "scope", "start_ns", "duration_ns"}};
    std::size_t left_out = 0;
    const Trace& trace = step.trace();
    for (const CallLane& lane : step.calls().lanes()) {
        for (const CallRow& row : lane.rows) {
            const std::size_t first = row.first_ending_after(start_ns);
            const std::size_t last = std::max(first, row.first_starting_at(end_ns));
            for (std::size_t i = first; i < last; ++i) {
                if (table.rows.size() >= most) {
                    left_out += last - i;
                    break;
                }
                const CallId id = row.ids[i];
                const auto call_class = step.calls().class_of(trace, id);
                table.rows.push_back({lane.name, kind_of(id.kind),
                                      kCallClassNames[static_cast<std::size_t>(call_class)],
                                      name_of(trace, id), module_of(trace, id), row.start_ns[i],
                                      row.end_ns[i] - row.start_ns[i]});
            }
        }
    }
    if (left_out > 0) table.left_out = fmt::format("{} more rows", left_out);
    return table;
}

}  // namespace profiler
