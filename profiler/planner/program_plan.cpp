#include "profiler/planner/program_plan.h"

#include "profiler/analysis/step/expert_routing.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/planner/plan_row.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>

namespace profiler {
namespace {

using models::fail;
using models::Result;

/// Whether `b` records the same step as `a`, at another batch.
Result<void> check_same_step(const NamedTrace& a, const NamedTrace& b) {
    auto first = program_of(*a.trace);
    const auto second = program_of(*b.trace);
    if (!first || !second) {
        return fail("{} is not of a program that temposcope run recorded: name two that are.",
                    (first ? b : a).file);
    }
    if (first->batch_size == second->batch_size) {
        return fail("{} and {} both have a batch of {}: record two batches.", a.file, b.file,
                    first->batch_size);
    }
    first->batch_size = second->batch_size;
    if (const auto others = differences(*first, *second); !others.empty()) {
        return fail("{} and {} differ in more than the batch: {}.", a.file, b.file,
                    fmt::join(others, ", "));
    }
    if (a.trace->text(a.trace->run().recipe) != b.trace->text(b.trace->run().recipe)) {
        return fail("{} and {} have different recipes.", a.file, b.file);
    }
    if (a.trace->steps.size() != b.trace->steps.size()) {
        return fail("{} holds {} steps and {} holds {}: record as many in each.", a.file,
                    a.trace->steps.size(), b.file, b.trace->steps.size());
    }
    return {};
}

/// "aten::mm in encoder.layer.3"
std::string words_of(const Trace& trace, Id<Op> op) {
    if (!op.valid()) return "something outside of ops";
    std::string text(trace.text(trace.ops.get<&Op::name>(op)));
    const Id<ModulePath> module = trace.ops.get<&Op::module_path>(op);
    if (module.valid()) {
        text +=
            fmt::format(" in {}", trace.text(trace.module_paths.get<&ModulePath::path>(module)));
    }
    return text;
}

/// `rows`: of the allocations of `large`.
Result<void> check_affine(const StepWork& small, const StepWork& large, const NamedTrace& of_large,
                          const std::vector<Id<Allocation>>& rows) {
    const auto requests = AffineRequests::fit(small, large);
    if (!requests) return tl::unexpected(requests.error());
    const auto bad = requests->not_affine();
    if (!bad) return {};
    return fail(
        "Memory does not grow in proportion to the batch: the {} of {} are more than {} / {} times "
        "those at batch {}. Other batches do not follow from these: let temposcope run try them.",
        format_bytes(large.allocations[*bad].size_bytes),
        words_of(*of_large.trace, of_large.trace->allocations.get<&Allocation::op>(rows[*bad])),
        large.batch_size, small.batch_size, small.batch_size);
}

/// "aten::mm in encoder.layer.3"; "nothing more" after the last one.
std::string op_at(const Trace& trace, std::size_t place) {
    const auto defaults = defaults_of(trace);
    const Id<Step> last(trace.steps.size() - 1);
    const StepOps ops = defaults ? ops_of_step(trace, last, *defaults) : StepOps();
    return place < ops.ops.size() ? words_of(trace, ops.ops[place].op) : "nothing more";
}

/// Other kernels take other memory, and nobody knows from which batch on.
Result<void> check_same_ops(const StepWork& small, const NamedTrace& of_small,
                            const StepWork& large, const NamedTrace& of_large) {
    const auto place = first_different_op(small, large);
    if (!place) return {};
    return fail(
        "{} and {} run different ops: at batch {} {}, at batch {} {}. {}, or let temposcope run "
        "try them.",
        of_small.file, of_large.file, small.batch_size, op_at(*of_small.trace, *place),
        large.batch_size, op_at(*of_large.trace, *place),
        // A dimension of 1 joins with any other, so that a reshape makes no copy.
        small.batch_size == 1 ? "A batch of 1 needs fewer copies than all others: record 2 or more"
                              : "Record two batches that run the same");
}

std::string recorded_at(const ProgramSteps& program) {
    std::vector<int64_t> batches;
    for (const StepWork& step : program.steps) batches.push_back(step.batch_size);
    return fmt::format(
        "on the line through batches {} on {}: another GPU or a far larger batch may choose other "
        "kernels, and other scratch memory",
        fmt::join(batches, ", "), program.device);
}

/// The backends of scaled_dot_product_attention that a program ran.
AttentionUse attention_use_of(const Trace& trace) {
    std::unordered_map<int32_t, DType> query_type;  // of the first tensor that each op reads
    for (const OpTensor edge : trace.op_tensors.rows()) {
        if (edge.access != Access::kRead || !edge.tensor.valid()) continue;
        query_type.emplace(edge.op.value, trace.tensors.get<&Tensor::dtype>(edge.tensor));
    }
    AttentionUse use;
    for (const Id<Op> id : trace.ops.ids()) {
        const std::string_view name = trace.text(trace.ops.get<&Op::name>(id));
        if (!name.starts_with("aten::_scaled_dot_product_")) continue;
        const auto query = query_type.find(id.value);
        const bool is_16_bit = query != query_type.end() && element_bytes(query->second) == 2;
        if (name.starts_with("aten::_scaled_dot_product_flash_attention")) {
            use.flash = true;
        } else if (name.starts_with("aten::_scaled_dot_product_cudnn_attention")) {
            use.cudnn = true;
        } else {
            use.other_16_bit = use.other_16_bit || is_16_bit;
        }
    }
    return use;
}

/// GPUs between which torch chooses attention alike (torch 2.11, sdp_utils.cpp): before Ampere no
/// flash attention, on Hopper and the data-centre GPUs of Blackwell cuDNN's where it can run.
enum class AttentionClass : uint8_t { kBeforeAmpere, kFlash, kCudnn };

AttentionClass attention_class_of(const Gpu& gpu) {
    const auto capability = gpu.compute_capability.value_or(models::ComputeCapability{});
    if (capability < models::kAmpere) return AttentionClass::kBeforeAmpere;
    return capability.major == 9 || capability.major == 10 ? AttentionClass::kCudnn
                                                           : AttentionClass::kFlash;
}

/// Another attention has other memory. Calls in float32 run the same one everywhere.
Result<void> check_attention(const ProgramSteps& program, const Gpu& gpu, const Gpu* recorded) {
    const AttentionUse& use = program.attention;
    const AttentionClass of_target = attention_class_of(gpu);
    if ((use.flash || use.cudnn) && of_target == AttentionClass::kBeforeAmpere) {
        return fail(
            "{} has no flash attention, which the program ran on {}: only a run there tells.",
            gpu.name, program.device);
    }
    const bool may_differ = recorded != nullptr && attention_class_of(*recorded) != of_target;
    if (!may_differ || (!use.cudnn && !use.other_16_bit)) return {};
    return fail(
        "On {} torch may choose another attention than {}, which the program ran on {}: "
        "only a run there tells.",
        gpu.name, use.cudnn ? "cuDNN's" : "the slow one", program.device);
}

/// None: a trace does not tell.
std::optional<UnevenExperts> uneven_experts_of(const std::vector<NamedTrace>& traces) {
    UnevenExperts uneven;
    for (const NamedTrace& named : traces) {
        const auto experts = expert_routing_of(*named.trace);
        if (!experts || experts->imbalanced_peak_bytes < 0) return std::nullopt;
        uneven.imbalance = experts->imbalance;
        const int64_t extra_bytes =
            experts->imbalanced_peak_bytes - report_of(named)->peak.allocated_bytes;
        uneven.extra_bytes.push_back(std::max(extra_bytes, int64_t{0}));
    }
    return uneven;
}

/// On the line through the smallest and the largest recorded batch.
int64_t extra_bytes_at(const ProgramSteps& program, int64_t batch_size) {
    const StepWork& small = program.steps.front();
    const StepWork& large = program.steps.back();
    const std::vector<int64_t>& extra = program.uneven_experts->extra_bytes;
    const double place = static_cast<double>(batch_size - small.batch_size) /
                         static_cast<double>(large.batch_size - small.batch_size);
    return std::llround(
        std::lerp(static_cast<double>(extra.front()), static_cast<double>(extra.back()), place));
}

/// Of a row with memory.
std::string uneven_experts_note(const ProgramSteps& program, const PlanRow& row) {
    const int64_t extra_bytes = extra_bytes_at(program, *row.batch_size);
    const int64_t peak_bytes = row.memory->contents.peaks.peak_allocated_bytes;
    const int64_t needed_bytes = row.memory->context_bytes + peak_bytes + extra_bytes;
    return fmt::format(
        "experts are assumed to get as many tokens each; {} at batch {}{}",
        uneven_peak_text(program.uneven_experts->imbalance, peak_bytes, peak_bytes + extra_bytes),
        *row.batch_size, needed_bytes > row.memory->usable_bytes ? ", which does not fit" : "");
}

}  // namespace

Result<ProgramSteps> program_steps_of(std::vector<NamedTrace> traces) {
    if (traces.size() < 2) {
        return fail("One trace gives no line: give traces of two batches.");
    }
    std::ranges::sort(traces, {},
                      [](const NamedTrace& named) { return named.trace->run().batch_size; });
    ProgramSteps result;
    std::vector<Id<Allocation>> rows;
    for (std::size_t i = 0; i < traces.size(); ++i) {
        const Trace& trace = *traces[i].trace;
        if (i > 0) {
            const auto ok = check_same_step(traces[i - 1], traces[i]);
            if (!ok) return tl::unexpected(ok.error());
        }
        if (trace.run().batch_size < 1) {
            return fail(
                "{} does not say its batch size, since no tensor went into its model: record a "
                "program whose model takes one with temposcope run.",
                traces[i].file);
        }
        if (!trace.steps.empty() && last_whole_step(trace).index() + 1 != trace.steps.size()) {
            return fail(
                "{} ends in a step that did not end, so what a step needs is not known: record the "
                "program with a smaller batch.",
                traces[i].file);
        }
        auto step = step_work_of(trace, &rows);
        if (!step) return fail("{}: {}", traces[i].file, step.error().message);
        if (i > 0) {
            const StepWork& before = result.steps.back();
            const auto same = check_same_ops(before, traces[i - 1], *step, traces[i]);
            if (!same) return tl::unexpected(same.error());
            const auto ok = check_affine(before, *step, traces[i], rows);
            if (!ok) return tl::unexpected(ok.error());
        }
        result.steps.push_back(std::move(*step));
    }
    const Trace& trace = *traces.front().trace;
    result.program = {.step = *program_of(trace),
                      .recipe = std::string(trace.text(trace.run().recipe))};
    result.uneven_experts = uneven_experts_of(traces);
    result.device = trace.text(trace.run().device_name);
    result.attention = attention_use_of(trace);
    return result;
}

Plan make_program_plan(const PlanRequest& request, const PlannerData& data,
                       const ProgramSteps& program) {
    Plan plan;
    auto interpolation = BatchInterpolation::of_steps(program.steps);
    const Gpu* const recorded = find_gpu_by_name(data.gpus, program.device, 0);
    for (const Gpu* gpu : request.gpus) {
        PlanRow row = start_row(request, data, program.program, *gpu);
        if (!interpolation) row.refuse(interpolation.error());
        if (row.status == PlanStatus::kOk) {
            const auto ok = check_attention(program, *gpu, recorded);
            if (!ok) row.refuse(ok.error());
        }
        if (row.status == PlanStatus::kOk) fill_row(row, request, data, *interpolation);
        row.notes.push_back(recorded_at(program));
        if (program.uneven_experts && row.memory && row.batch_size) {
            row.notes.push_back(uneven_experts_note(program, row));
        }
        plan.rows.push_back(std::move(row));
    }
    return plan;
}

std::vector<GpuGroup> gpus_of_other_attention(const PlanRequest& request, const PlannerData& data,
                                              const ProgramSteps& program) {
    const Gpu* const recorded = find_gpu_by_name(data.gpus, program.device, 0);
    std::map<AttentionClass, GpuGroup> groups;
    for (const Gpu* gpu : request.gpus) {
        if (gpu->compute_capability && !check_attention(program, *gpu, recorded)) {
            groups[attention_class_of(*gpu)].push_back(gpu);
        }
    }
    std::vector<GpuGroup> result;
    for (auto& [attention_class, gpus] : groups) result.push_back(std::move(gpus));
    return result;
}

}  // namespace profiler
