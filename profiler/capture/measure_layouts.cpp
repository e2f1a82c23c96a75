#include "profiler/capture/measure_layouts.h"

#include "profiler/capture/layout_kernels.h"
#include "profiler/capture/measure_device.h"
#include "profiler/capture/recorded_training.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace profiler {
namespace {

using Clock = std::chrono::steady_clock;

/// A call whose first two runs took longer than this many times the fastest is measured no further.
constexpr double kHopeless = 1.3;
/// A sample repeats a call for at least as long, so that the clock's own time does not matter.
constexpr double kLeastSampleNs = 2e5;

/// A call that computes one or several configurations, and its samples.
struct MeasuredCall {
    std::string key;  // calls of equal keys take equal time
    LayoutCall call;
    bool is_always_measured = false;                            // however slow its first runs are
    double first_ns = std::numeric_limits<double>::infinity();  // the faster of the first two runs
    std::vector<double> samples;
};

/// Of one of `repeats` calls.
double time_ns(const LayoutCall& call, int64_t repeats, const at::Device& device) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < repeats; ++i) call();
    wait_for(device);
    const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
    return elapsed.count() / static_cast<double>(repeats);
}

/// A way to compute a GEMM in some orders: by the form with the fewest matrices.
struct GemmChoice {
    GemmForm form;
    GemmCalls calls = GemmCalls::kEach;
};
std::vector<GemmChoice> gemm_choices(const std::vector<std::string>& orders,
                                     const DimensionSizes& sizes, bool is_cpu) {
    std::vector<GemmChoice> choices;
    const auto forms = gemm_forms({orders[0], orders[1], orders[2]}, sizes);
    if (forms.empty()) return choices;
    for (const GemmCalls calls : gemm_calls(forms.front(), is_cpu)) {
        choices.push_back({forms.front(), calls});
    }
    return choices;
}

class LayoutTimes {
public:
    LayoutTimes(const at::Device& device, const LayoutMeasurement& measurement,
                const CaptureCallbacks& callbacks)
        : device_(device),
          measurement_(measurement),
          callbacks_(callbacks),
          buffers_(measurement.sizes, device),
          graph_(make_layout_graph(measurement.sizes)) {}

    LayoutGraph run() {
        const at::NoGradGuard no_gradients;
        graph_.num_rounds = measurement_.num_rounds;
        const auto num_ops = static_cast<int64_t>(graph_.ops.size());
        const auto total = num_ops + static_cast<int64_t>(graph_.tensors.size());
        int64_t done = 0;
        for (LayoutOp& op : graph_.ops) {
            report(callbacks_, op.name, done, total);
            measure(encoder_layer().ops[static_cast<std::size_t>(done)], op);
            buffers_.clear();
            ++done;
        }
        for (LayoutTensor& tensor : graph_.tensors) {
            report(callbacks_, "copies of " + tensor.name, done++, total);
            measure_copies(tensor);
            buffers_.clear();
        }
        return std::move(graph_);
    }

private:
    std::vector<std::string> orders_of(const LayoutOp& op,
                                       const LayoutConfiguration& configuration) const {
        std::vector<std::string> orders;
        for (std::size_t i = 0; i < op.tensors.size(); ++i) {
            orders.push_back(graph_.tensors[op.tensors[i]].orders[configuration.orders[i]]);
        }
        return orders;
    }

    void measure(const EncoderOp& op, LayoutOp& row) {
        std::vector<std::vector<std::string>> keys;  // by configuration: of the calls that do it
        for (const LayoutConfiguration& configuration : row.configurations) {
            const auto orders = orders_of(row, configuration);
            keys.push_back(op.kernel == LayoutKernel::kGemm ? add_gemms(row, orders)
                                                            : add_call(op, row, orders));
            if (is_torchs(row, orders)) always_measure(keys.back());
        }
        run_calls();
        for (std::size_t i = 0; i < keys.size(); ++i) {
            double best = std::numeric_limits<double>::infinity();
            for (const std::string& key : keys[i]) best = std::min(best, times_ns_.at(key));
            row.configurations[i].time_ns = best;
        }
    }

    /// Everything is compared with the orders of torch's modules, so their times must be as good.
    bool is_torchs(const LayoutOp& op, const std::vector<std::string>& orders) const {
        for (std::size_t i = 0; i < orders.size(); ++i) {
            const std::vector<std::string>& own = torchs_orders_[op.tensors[i]];
            if (std::find(own.begin(), own.end(), orders[i]) == own.end()) return false;
        }
        return true;
    }
    void always_measure(const std::vector<std::string>& keys) {
        for (MeasuredCall& call : calls_) {
            const bool is_one = std::find(keys.begin(), keys.end(), call.key) != keys.end();
            call.is_always_measured = call.is_always_measured || is_one;
        }
    }

    std::vector<std::string> add_gemms(const LayoutOp& op, const std::vector<std::string>& orders) {
        const auto flat = [&](std::size_t place) {
            return buffers_.memory(graph_.tensors[op.tensors[place]].name, orders[place]);
        };
        std::vector<std::string> keys;
        for (const GemmChoice& one : gemm_choices(orders, buffers_.sizes(), device_.is_cpu())) {
            keys.push_back(key_of(one));
            add(keys.back(),
                [&] { return gemm_call(one.form, one.calls, flat(0), flat(1), flat(2)); });
        }
        return keys;
    }

    static std::string key_of(const GemmChoice& one) {
        const auto operand = [](const GemmOperand& o) {
            return fmt::format("{} {} {}", o.batch_stride, o.row_stride, o.column_stride);
        };
        const GemmForm& form = one.form;
        return fmt::format("{} {} {} {} {}: {}, {}, {}", static_cast<int>(one.calls), form.batch,
                           form.m, form.n, form.k, operand(form.a), operand(form.b),
                           operand(form.c));
    }

    /// Two ops with the same kernel and sizes take the same time.
    std::vector<std::string> add_call(const EncoderOp& op, const LayoutOp& row,
                                      const std::vector<std::string>& orders) {
        std::string key = fmt::format("{}", static_cast<int>(op.kernel));
        for (std::size_t i = 0; i < row.tensors.size(); ++i) {
            key += " " + sized(graph_.tensors[row.tensors[i]].dimensions) + " " + sized(orders[i]);
        }
        add(key, [&] { return layout_call(op, orders, buffers_); });
        return {key};
    }

    /// There are as many tokens that are attended to as tokens, so a key is handled as a query.
    static std::string sized(std::string order) {
        if (order.find('j') == order.npos) std::replace(order.begin(), order.end(), 'k', 'j');
        return order;
    }

    template <typename Make>
    void add(const std::string& key, const Make& make) {
        if (times_ns_.contains(key)) return;
        times_ns_[key] = 0;
        calls_.push_back({.key = key, .call = make()});
    }

    void measure_copies(LayoutTensor& tensor) {
        const bool is_free = tensor.role == LayoutRole::kWeight || tensor.dimensions.size() > 4;
        if (is_free) return;  // no copy: neighbours choose the orders, or copy anyway
        const std::size_t count = tensor.orders.size();
        const auto key = [&](std::size_t from, std::size_t to) {
            return fmt::format("copy {} {}", sized(tensor.orders[from]), sized(tensor.orders[to]));
        };
        for (std::size_t from = 0; from < count; ++from) {
            for (std::size_t to = 0; to < count; ++to) {
                if (from == to) continue;
                add(key(from, to), [&]() -> LayoutCall {
                    return [x = buffers_.logical(tensor.name, tensor.orders[from]),
                            y = buffers_.logical(tensor.name, tensor.orders[to])]() mutable {
                        y.copy_(x);
                    };
                });
            }
        }
        run_calls();
        tensor.copy_ns.assign(count * count, 0);
        for (std::size_t from = 0; from < count; ++from) {
            for (std::size_t to = 0; to < count; ++to) {
                if (from != to) tensor.copy_ns[from * count + to] = times_ns_.at(key(from, to));
            }
        }
    }

    /// Measures the calls that were added, and forgets them.
    void run_calls() {
        double best = std::numeric_limits<double>::infinity();
        for (int run = 0; run < 2; ++run) {
            for (MeasuredCall& call : calls_) {
                callbacks_.check_cancelled();
                call.first_ns = std::min(call.first_ns, time_ns(call.call, 1, device_));
                best = std::min(best, call.first_ns);
            }
        }
        for (int64_t round = 0; round < measurement_.num_rounds; ++round) {
            for (MeasuredCall& call : calls_) {
                if (call.first_ns > kHopeless * best && !call.is_always_measured) continue;
                callbacks_.check_cancelled();
                const auto repeats =
                    static_cast<int64_t>(std::clamp(kLeastSampleNs / call.first_ns, 1.0, 100.0));
                call.samples.push_back(time_ns(call.call, repeats, device_));
            }
        }
        for (MeasuredCall& call : calls_) {
            times_ns_[call.key] = call.samples.empty() ? call.first_ns : median(call.samples);
        }
        calls_.clear();
    }

    const at::Device device_;
    const LayoutMeasurement& measurement_;
    const CaptureCallbacks& callbacks_;
    LayoutBuffers buffers_;
    LayoutGraph graph_;
    const std::vector<std::vector<std::string>> torchs_orders_ = default_orders();
    std::vector<MeasuredCall> calls_;
    std::map<std::string, double> times_ns_;  // by key
};

/// The calls of a whole layer, one after the other.
class LayerCalls {
public:
    LayerCalls(const LayoutRun& run, LayoutBuffers& buffers, const at::Device& device)
        : buffers_(buffers), device_(device) {
        for (const LayoutRunStep& step : run) {
            for (const LayoutRunCopy& copy : step.before) add_copy(copy);
            const EncoderOp& op = encoder_layer().ops[step.op];
            calls_.push_back(op.kernel == LayoutKernel::kGemm
                                 ? fastest_gemm(op, step.orders)
                                 : layout_call(op, step.orders, buffers));
            for (const LayoutRunCopy& copy : step.after) add_copy(copy);
        }
    }
    void operator()() const {
        for (const LayoutCall& call : calls_) call();
    }

private:
    void add_copy(const LayoutRunCopy& copy) {
        calls_.push_back([x = buffers_.logical(copy.tensor, copy.from),
                          y = buffers_.logical(copy.tensor, copy.to)]() mutable { y.copy_(x); });
    }

    /// Of several calls that compute it, the fastest in a few runs.
    LayoutCall fastest_gemm(const EncoderOp& op, const std::vector<std::string>& orders) const {
        LayoutCall fastest;
        double least_ns = std::numeric_limits<double>::infinity();
        for (const GemmChoice& one : gemm_choices(orders, buffers_.sizes(), device_.is_cpu())) {
            LayoutCall call = gemm_call(
                one.form, one.calls, buffers_.memory(op.reads[0], orders[0]),
                buffers_.memory(op.reads[1], orders[1]), buffers_.memory(op.writes[0], orders[2]));
            for (int run = 0; run < 3; ++run) {
                const double ns = time_ns(call, 1, device_);
                if (ns >= least_ns) continue;
                least_ns = ns;
                fastest = call;
            }
        }
        if (!fastest) throw std::invalid_argument("no GEMM computes " + op.name + " in its orders");
        return fastest;
    }

    LayoutBuffers& buffers_;
    const at::Device device_;
    std::vector<LayoutCall> calls_;
};

}  // namespace

std::vector<double> time_layout_runs(const at::Device& device, const LayoutMeasurement& measurement,
                                     const std::vector<LayoutRun>& runs,
                                     const CaptureCallbacks& callbacks) {
    const at::NoGradGuard no_gradients;
    LayoutBuffers buffers(measurement.sizes, device);
    std::vector<LayoutCall> layers;
    for (const LayoutRun& run : runs) layers.push_back(LayerCalls(run, buffers, device));
    std::vector<std::vector<double>> samples(layers.size());
    for (int64_t round = 0; round <= measurement.num_rounds; ++round) {
        report(callbacks, "whole layers", round, measurement.num_rounds);
        for (std::size_t i = 0; i < layers.size(); ++i) {
            callbacks.check_cancelled();
            const double ns = time_ns(layers[i], 1, device);
            if (round > 0) samples[i].push_back(ns);  // the first is a warm-up
        }
    }
    std::vector<double> medians;
    for (std::vector<double>& of_layer : samples) medians.push_back(median(std::move(of_layer)));
    return medians;
}

LayoutGraph measure_layouts(const at::Device& device, const LayoutMeasurement& measurement,
                            const CaptureCallbacks& callbacks) {
    return LayoutTimes(device, measurement, callbacks).run();
}

}  // namespace profiler
