#include "profiler/allocator/settings_run.h"
#include "profiler/analysis/advice/remedies.h"
#include "profiler/planner/placement/place_and_schedule.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace profiler {
namespace {

/// Its id, also of the one that only combinations have.
constexpr std::string_view kGrowingSegments = "expandable_segments";

// ---- the allocator's settings ------------------------------------------------------------------

/// What tensors take together, as far as the trace is sure of it.
int64_t least_allocated_bytes(const RemedyCase& which) {
    if (which.steps.unknown_rest().empty()) return which.as_written.peak_allocated_bytes;
    const Evidence& evidence = which.evidence;
    return which.conditions.batch_factor == 1 ? evidence.allocated_bytes + evidence.asked_bytes : 0;
}

/// Memory that lies unused in segments is what settings can win. Tensors that are too large
/// together stay so.
constexpr double kLeastShareUnused = 0.05;

bool may_be_won(const RemedyCase& which) {
    if (which.contradicts_recording) return false;
    const StepOutcome& written = which.as_written;
    const auto limit = which.conditions.limit_bytes;
    if (limit && least_allocated_bytes(which) > *limit) return false;
    const auto unused =
        static_cast<double>(written.peak_reserved_bytes - written.peak_allocated_bytes);
    return unused >= kLeastShareUnused * static_cast<double>(written.peak_reserved_bytes) ||
           (!written.fits && limit);
}

Candidate setting(const RemedyCase& which, const AllocatorSettings& settings,
                  std::string sentence) {
    RemedyCase other = which;
    other.conditions.settings = settings;
    const std::string text = to_text(settings);
    return {.remedy = {.sentence = std::move(sentence),
                       .change = {.kind = RemedyChange::Kind::kSetting,
                                  .text = "PYTORCH_CUDA_ALLOC_CONF=" + text,
                                  .name = text},
                       .estimated = outcome_of(other, {})},
            .changes = {},
            .settings = settings};
}

std::vector<Candidate> grow_segments(const RemedyCase& which) {
    if (!may_be_won(which)) return {};
    auto growing = growing_segments(which);
    return growing ? std::vector{*std::move(growing)} : std::vector<Candidate>();
}

/// The best of the others: what fits, then what reserves least.
std::vector<Candidate> other_settings(const RemedyCase& which) {
    if (!may_be_won(which)) return {};
    const bool has_limit = which.conditions.limit_bytes.has_value();
    std::optional<Candidate> best;
    for (const AllocatorSettings& settings : settings_to_try(has_limit)) {
        const bool is_said = settings.expandable_segments || settings == AllocatorSettings{} ||
                             settings == which.conditions.settings;
        if (is_said) continue;
        Candidate tried =
            setting(which, settings, "Blocks are split and kept by other rules. It costs nothing.");
        const auto rank = [](const Candidate& one) {
            const StepOutcome& outcome = one.remedy.estimated;
            return std::pair(!outcome.fits, outcome.peak_reserved_bytes);
        };
        if (!best || rank(tried) < rank(*best)) best = std::move(tried);
    }
    if (!best) return {};
    best->remedy.title = fmt::format("Set {}", best->remedy.change.name);
    return {*std::move(best)};
}

// ---- the batch ---------------------------------------------------------------------------------

int64_t recorded_batch(const RemedyCase& which) { return which.evidence.trace.run().batch_size; }

RemedyCase with_batch(const RemedyCase& which, int64_t batch_size) {
    RemedyCase other = which;
    other.conditions.batch_factor =
        static_cast<double>(batch_size) / static_cast<double>(recorded_batch(which));
    return other;
}

StepOutcome at_batch(const RemedyCase& which, int64_t batch_size) {
    StepOutcome outcome = outcome_of(with_batch(which, batch_size), {});
    outcome.step_time_ns = -1;  // kernels do not follow the batch
    return outcome;
}

bool fits_batch(const RemedyCase& which, int64_t batch_size) {
    return which.steps.serves_all({}, with_batch(which, batch_size).conditions);
}

/// Where the line through two batches meets the limit.
int64_t likely_largest(const RemedyCase& which, int64_t limit_bytes) {
    RemedyCase endless = which;
    endless.conditions.limit_bytes.reset();
    const int64_t batch = recorded_batch(which);
    const int64_t half = std::max<int64_t>(batch / 2, 1);
    const int64_t other = half == batch ? 2 : half;
    const auto bytes = [&](int64_t at) {
        return static_cast<double>(at_batch(endless, at).peak_allocated_bytes);
    };
    const double at_recorded = bytes(batch);
    const double slope = (at_recorded - bytes(other)) / static_cast<double>(batch - other);
    if (slope <= 0) return -1;
    const double fixed = at_recorded - slope * static_cast<double>(batch);
    const double largest = (static_cast<double>(limit_bytes) - fixed) / slope;
    return std::max<int64_t>(0, std::llround(std::floor(largest)));
}

std::vector<Candidate> smaller_batch(const RemedyCase& which) {
    const int64_t largest = which.largest_batch;
    if (which.as_written.fits || largest < 1) return {};
    Remedy remedy{
        .title = fmt::format("Train a batch of {}", largest),
        .sentence = fmt::format("A batch of {} is the largest that fits as the program is "
                                "written. Gradients of two smaller batches add up to the same "
                                "step.",
                                largest),
        .change = {.kind = RemedyChange::Kind::kBatch, .text = std::to_string(largest)},
        .code_lines = 1,
        .estimated = at_batch(which, largest)};
    return {{.remedy = std::move(remedy), .changes = {}, .settings = {}}};
}

// ---- the GPU -----------------------------------------------------------------------------------

struct Card {
    const Gpu* gpu = nullptr;
    int64_t capacity_bytes = 0;
};

/// It lacks kernels that the step may have used, such as flash attention.
bool is_older(const Gpu& gpu, const Gpu* recorded) {
    return recorded != nullptr && gpu.compute_capability < recorded->compute_capability;
}

/// The GPUs with more memory that run the same kernels, the smallest first.
std::vector<Card> larger_cards(const RemedyCase& which) {
    std::vector<Card> cards;
    for (const Gpu& gpu : which.data.gpus) {
        const auto bytes = limit_on(gpu, which.data);
        const auto limit = which.conditions.limit_bytes;
        const bool is_larger = bytes && limit && *bytes > *limit;
        if (is_larger && !is_older(gpu, which.recorded_gpu)) cards.push_back({&gpu, *bytes});
    }
    std::ranges::stable_sort(cards, {}, &Card::capacity_bytes);
    return cards;
}

std::vector<Candidate> larger_gpu(const RemedyCase& which) {
    if (which.as_written.fits) return {};
    const auto needed =
        static_cast<double>(which.as_written.peak_allocated_bytes) / (1 - kLeastShareLeft);
    for (const Card& card : larger_cards(which)) {
        if (static_cast<double>(card.capacity_bytes) < needed) continue;
        RemedyCase other = which;
        other.conditions.limit_bytes = card.capacity_bytes;
        StepOutcome outcome = outcome_of(other, {});
        outcome.step_time_ns = -1;  // of another GPU
        if (!fits_well(outcome, card.capacity_bytes)) continue;
        Remedy remedy{
            .title = fmt::format("Train on {}", card.gpu->name),
            .sentence = fmt::format("It is the smallest GPU of the catalogue, and no older one, on "
                                    "which the step fits as written: {} for tensors.",
                                    format_bytes(card.capacity_bytes)),
            .change = {.kind = RemedyChange::Kind::kCard,
                       .text = card.gpu->id,
                       .name = card.gpu->id},
            .estimated = outcome};
        return {{.remedy = std::move(remedy), .changes = {}, .settings = {}}};
    }
    return {};
}

constexpr std::array kTargetRemedies{
    RemedyRow{kGrowingSegments, "Let segments grow", "fragmentation", grow_segments},
    RemedyRow{"allocator_settings", "Set the allocator", "fragmentation", other_settings},
    RemedyRow{"smaller_batch", "Train a smaller batch", "", smaller_batch},
    RemedyRow{"larger_gpu", "Train on a larger GPU", "", larger_gpu},
};

}  // namespace

std::span<const RemedyRow> remedies_of_target() { return kTargetRemedies; }

std::optional<Candidate> growing_segments(const RemedyCase& which) {
    AllocatorSettings settings = which.conditions.settings;
    if (which.contradicts_recording || settings.expandable_segments) return std::nullopt;
    settings.expandable_segments = true;
    Candidate growing =
        setting(which, settings,
                "Segments that grow leave fewer pieces too small to use. It costs nothing.");
    growing.remedy.id = kGrowingSegments;
    return growing;
}

models::Result<int64_t> limit_on(const Gpu& gpu, const PlannerData& data) {
    const auto usual = find_environment(data.environments, kUsualSetup);
    if (!usual) return tl::unexpected(usual.error());
    const auto environment = environment_for(data.environments, **usual, gpu);
    if (!gpu.compute_capability || !environment) {
        return models::fail("{} does not run CUDA: choose a GPU of NVIDIA.", gpu.name);
    }
    return tensor_capacity_bytes(gpu, **environment);
}

int64_t find_largest_batch(const RemedyCase& which) {
    constexpr int64_t kNone = -1;
    const auto limit = which.conditions.limit_bytes;
    const bool is_known = limit && recorded_batch(which) > 0 && which.evidence.step.valid() &&
                          which.steps.unknown_rest().empty() && !which.contradicts_recording;
    if (!is_known) return kNone;
    const int64_t likely = likely_largest(which, *limit);
    if (likely < 0) return kNone;
    // Fragmentation leaves less than the line says; rounding may leave one more.
    int64_t fits = 0;
    int64_t fails = likely + 2;
    const auto try_batch = [&](int64_t tried) {
        (fits_batch(which, tried) ? fits : fails) = tried;
    };
    for (int64_t below = 0; fits == 0 && likely + 1 - below > 0; below = 2 * below + 1) {
        try_batch(likely + 1 - below);
    }
    while (fails - fits > 1) try_batch(fits + (fails - fits) / 2);
    return fits;
}

}  // namespace profiler
