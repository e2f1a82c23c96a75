#include "models/config/parallel.h"

#include "models/config/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace models {
namespace {

bool has_groups(Strategy strategy) {
    return strategy == Strategy::kHsdp || strategy == Strategy::kTensor ||
           strategy == Strategy::kPipeline;
}

Result<void> check_world(const Parallel& parallel, int64_t world_size) {
    const int64_t size = parallel.group_size;
    if (parallel.strategy == Strategy::kNone) {
        if (world_size == 1) return {};
        return fail("'none' is one GPU: choose another strategy, such as fsdp2.");
    }
    if (world_size < 2 || world_size > kMostRanks) {
        return fail("{} spreads a step over 2 to {} GPUs: {} is not such a number.",
                    to_text(parallel), kMostRanks, world_size);
    }
    if (size == 0 || world_size % size == 0) return {};
    return fail(
        "{} makes groups of {} GPUs, and {} GPUs are no such groups: give a multiple of {}.",
        to_text(parallel), size, world_size, size);
}

Result<void> check_model(const Workload& w, const Parallel& parallel) {
    const ModelConfig& m = w.model;
    if (m.traits().heads.empty()) {  // layers alone
        return fail("{} cannot be spread over GPUs: choose BERT, RoBERTa or GPT-2.", m.name);
    }
    const int64_t size = parallel.group_size;
    if (parallel.strategy == Strategy::kTensor) {
        for (const auto& [number, what] : {std::pair(m.num_heads, "heads"),
                                           std::pair(m.intermediate_size, "widths of the MLP")}) {
            if (number % size == 0) continue;
            return fail(
                "tp:{} gives each GPU as many heads and as much of the MLP: {} {} cannot "
                "be split so.",
                size, number, what);
        }
    }
    if (parallel.strategy == Strategy::kPipeline && m.num_layers % size != 0) {
        return fail("pp:{} gives each stage as many layers: {} layers cannot be split so.", size,
                    m.num_layers);
    }
    return {};
}

/// What app/python/temposcope/_built_in.py does not build.
Result<void> check_recipe(const Workload& w, const Parallel& parallel) {
    const Recipe& r = w.recipe;
    if (parallel.strategy == Strategy::kTensor && r.gelu == Gelu::kRecompute) {
        return fail(
            "gelu=recompute joins GELU with the linear layer after it, which {} splits: choose "
            "another value of gelu.",
            to_text(parallel));
    }
    const bool splits_tensors =
        parallel.strategy == Strategy::kTensor || parallel.strategy == Strategy::kFsdp2 ||
        parallel.strategy == Strategy::kFsdp2NoReshard || parallel.strategy == Strategy::kHsdp;
    if (splits_tensors && r.optimizer == Optimizer::kLamb) {
        return fail(
            "optimizer=lamb needs the norms of whole tensors, which {} splits: choose "
            "another optimizer.",
            to_text(parallel));
    }
    const bool is_known = w.layer_recipes.empty() && r.fusion == Fusion::kNone &&
                          r.gelu != Gelu::kPython && r.checkpoint != Checkpoint::kSqrt &&
                          r.implementation == Implementation::kOurs;
    if (is_known) return {};
    return fail(
        "The recipe {} cannot be spread over GPUs: choose one recipe for all layers, without "
        "fusion, gelu=python, checkpoint=sqrt and Tempo's published kernels.",
        w.recipe_name);
}

Result<void> check_precision(const Workload& w, const Parallel& parallel) {
    if (w.precision == Precision::kFp64) {
        return fail("fp64 is the reference of one GPU: choose another precision for many.");
    }
    if (!has_master_weights(w.precision)) return {};
    const bool keeps_them = parallel.strategy == Strategy::kNone ||
                            parallel.strategy == Strategy::kDdp ||
                            parallel.strategy == Strategy::kTensor;
    if (keeps_them) return {};
    return fail(
        "{} has fp32 master weights, which only one GPU, ddp and tp keep: choose amp-{} or "
        "pure-{} for {}.",
        name_of(w.precision), name_of(w.precision), name_of(w.precision), to_text(parallel));
}

}  // namespace

Result<Parallel> parse_parallel(std::string_view text) {
    const std::size_t colon = text.find(':');
    const auto strategy = find_name<Strategy>(kStrategyNames, text.substr(0, colon));
    if (!strategy) return fail("'{}' is not a strategy: choose {}.", text, kStrategyList);
    Parallel parallel{.strategy = *strategy};
    const std::string_view number = colon == text.npos ? "" : text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), parallel.group_size);
    const bool is_number = error == std::errc() && end == number.data() + number.size();
    if (has_groups(*strategy) && !(is_number && parallel.group_size >= 2)) {
        return fail("{} takes the size of its groups: write {}:N with a number from 2 on.", text,
                    name_of(*strategy));
    }
    if (!has_groups(*strategy) && colon != text.npos) {
        return fail("{} has no groups: write {} without a number.", text, name_of(*strategy));
    }
    return parallel;
}

std::string to_text(const Parallel& parallel) {
    const std::string name(name_of(parallel.strategy));
    return parallel.group_size == 0 ? name : fmt::format("{}:{}", name, parallel.group_size);
}

Result<void> validate(const Workload& workload, const Parallel& parallel, int64_t world_size) {
    if (const auto ok = check_world(parallel, world_size); !ok) return ok;
    if (const auto ok = check_model(workload, parallel); !ok) return ok;
    if (const auto ok = check_recipe(workload, parallel); !ok) return ok;
    return check_precision(workload, parallel);
}

int64_t micro_batches_per_step(const Workload& workload, const Parallel& parallel) {
    const bool is_pipeline = parallel.strategy == Strategy::kPipeline;
    return std::max(workload.gradient_accumulation_steps, is_pipeline ? parallel.group_size : 1);
}

int64_t sequences_per_step(const Workload& workload, const Parallel& parallel, int64_t world_size) {
    const bool is_split =
        parallel.strategy == Strategy::kTensor || parallel.strategy == Strategy::kPipeline;
    return workload.batch_size * micro_batches_per_step(workload, parallel) * world_size /
           (is_split ? parallel.group_size : 1);
}

}  // namespace models
