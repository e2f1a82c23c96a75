#include "profiler/capture/values/assumptions.h"

#include "profiler/capture/torch_adapter/op_call.h"
#include "profiler/capture/values/tensor_values.h"
#include "profiler/capture/values/value_reads.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <string_view>

namespace profiler {

using models::Routing;

namespace {

/// A choice among more is one of tokens or of positions, not of experts.
constexpr int64_t kMostExperts = 512;
/// Norms and scales are few.
constexpr int64_t kMostNorms = 4096;
constexpr uint64_t kSeed = 1;

at::Generator generator(uint64_t seed) { return at::detail::createCPUGenerator(seed); }

/// The next seed of the process.
uint64_t next_seed() {
    static std::atomic<uint64_t> last = kSeed;
    return ++last;
}

bool is_float(const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined() &&
           at::isFloatingType(value.toTensor().scalar_type());
}

bool is_same(const at::Tensor& left, const at::Tensor& right) {
    return left.const_data_ptr() == right.const_data_ptr() && left.sizes() == right.sizes() &&
           left.strides() == right.strides();
}

bool is_infinite(const c10::IValue& value) {
    return value.isScalar() && value.toScalar().isFloatingPoint() &&
           std::isinf(value.toScalar().toDouble());
}

/// The dimension of which an op chooses places, counted from the first one. None: of all elements.
std::optional<int64_t> dim_of(const OpTraits& op, std::span<const c10::IValue> inputs) {
    if (inputs[0].toTensor().dim() == 0) return std::nullopt;
    if (const auto given = dim_argument(op, inputs)) return given;
    const bool is_last = op.name == "aten::topk" || op.name == "aten::multinomial";
    return is_last ? std::optional<int64_t>(-1) : std::nullopt;
}

at::Tensor weights_of(int64_t width, const Routing& routing) {
    const at::Tensor place = at::arange(1, width + 1, at::kDouble);
    return routing.kind == Routing::Kind::kZipf ? place.pow(-routing.strength)
                                                : at::ones_like(place);
}

/// Expert 0 gets its multiple of the share; the others get the rest in turn.
at::Tensor worst_routes(int64_t rows, int64_t k, int64_t width, double multiple) {
    const double share = static_cast<double>(rows * k) / static_cast<double>(width);
    const double most = std::min(static_cast<double>(rows), share * multiple);
    const auto of_first = static_cast<int64_t>(std::llround(most));
    at::Tensor result = at::empty({rows, k}, at::kLong);
    auto table = result.accessor<int64_t, 2>();
    int64_t next = 0;
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t j = 0; j < k; ++j) {
            const bool is_first = j == 0 && row < of_first;
            table[row][j] = is_first || width == 1 ? 0 : 1 + next++ % (width - 1);
        }
    }
    return result;
}

/// Which of `width` experts each row goes to: [rows, k] of int64, different ones in a row.
at::Tensor routes(int64_t rows, int64_t k, int64_t width, const Routing& routing) {
    switch (routing.kind) {
        case Routing::Kind::kBalanced:
        case Routing::Kind::kZeros:
            return at::arange(rows * k, at::kLong).remainder(width).view({rows, k});
        case Routing::Kind::kWorst:
            return worst_routes(rows, k, width, routing.strength);
        default:
            // Without replacement, in proportion to the weights.
            const at::Tensor weights = weights_of(width, routing).expand({rows, width});
            return at::multinomial(weights, k, /*replacement=*/false,
                                   generator(kSeed + routing.seed));
    }
}

/// Gives the outputs of one op what is assumed of them.
class Assuming {
public:
    Assuming(const Assumed& assumed, const Routing& routing)
        : assumed_(assumed), routing_(routing) {}

    /// `is_only`: the op has no other output.
    void give(const at::Tensor& output, bool is_only) {
        if (!is_plain_on_gpu(output) || output.numel() == 0) return;
        const bool is_place = output.scalar_type() == at::kLong;
        switch (assumed_.what) {
            case Assumption::kTop:
            case Assumption::kOrder:
            case Assumption::kSample:
                if (is_place) return give_places(output);
                // Of max(), the largest of all: a scale.
                return is_only && output.numel() == 1 ? give_all(output, 1.0, "1") : void();
            case Assumption::kTrue:
                return output.scalar_type() == at::kBool ? give_all(output, true, "true") : void();
            case Assumption::kNorm:
                return output.numel() <= kMostNorms ? give_all(output, 1.0, "1") : void();
            default:
                if (output.scalar_type() == at::kBool) give_all(output, assumed_.is_true, "finite");
        }
    }
    /// Of equal, which the virtual GPU itself answers.
    void give_verdict() { answer_ = "true"; }
    /// Counts what was assumed. False: this line has assumed too often.
    bool may_go_on() const { return answer_.empty() || count_assumption(kind_, answer_, choice_); }

private:
    void give_all(const at::Tensor& output, const at::Scalar& value, const char* answer) {
        set_all(output, value);
        answer_ = answer;
    }

    void give_places(const at::Tensor& places) {
        if (assumed_.width == 0) return;
        if (assumed_.what == Assumption::kOrder) {
            answer_ = "the order as it is";
            const at::Tensor row = at::arange(assumed_.width, at::kLong);
            return give_rows(places, row.expand({places.numel() / assumed_.width, -1}));
        }
        const bool has_rows = assumed_.what == Assumption::kTop && places.dim() > 0;
        const int64_t k = has_rows ? places.size(assumed_.dim) : 1;
        const bool is_routing = assumed_.width <= kMostExperts && places.numel() > k;
        if (is_routing) {
            if (routing_.kind == Routing::Kind::kZeros) return;
            answer_ = to_text(routing_) + " routing";
            const int64_t num_rows = places.numel() / k;
            if (assumed_.is_router) {
                kind_ = ValueReadKind::kRouting;
                choice_ = {num_rows, assumed_.width, k};
            }
            give_rows(places, routes(num_rows, k, assumed_.width, routing_));
        } else if (has_rows) {
            answer_ = "places that follow each other";
            give_rows(places, routes(places.numel() / k, k, assumed_.width, {}));
        } else {
            answer_ = "uniform places";
            set_values(places, at::randint(assumed_.width, places.sizes(), generator(next_seed()),
                                           at::TensorOptions().dtype(at::kLong)));
        }
    }

    /// `rows`: [number of rows, k]. Where k is not 1, a row lies along the op's dimension.
    void give_rows(const at::Tensor& places, const at::Tensor& rows) const {
        if (rows.size(1) == 1) return set_values(places, rows.reshape(places.sizes()));
        const at::Tensor last = places.movedim(assumed_.dim, -1);
        set_values(places, rows.reshape(last.sizes()).movedim(-1, assumed_.dim));
    }

    const Assumed assumed_;
    const Routing& routing_;
    ValueReadKind kind_ = ValueReadKind::kAssumed;
    ExpertChoice choice_;
    std::string answer_;  // empty: nothing was assumed
};

}  // namespace

std::optional<Assumed> assumption_for(const OpTraits& op, std::span<const c10::IValue> inputs) {
    Assumed assumed{.what = op.assumption};
    if (op.assumption == Assumption::kTrue) return assumed;
    if (op.assumption == Assumption::kNone || inputs.empty()) return std::nullopt;
    if (op.assumption == Assumption::kNorm && inputs[0].isTensorList()) return assumed;
    if (!is_float(inputs[0])) return std::nullopt;
    const at::Tensor& values = inputs[0].toTensor();
    switch (op.assumption) {
        case Assumption::kEqual:
        case Assumption::kUnequal: {
            const bool is_equal = inputs[1].isTensor() && is_same(values, inputs[1].toTensor());
            if (!is_equal && !is_infinite(inputs[1])) return std::nullopt;
            assumed.is_true = is_equal == (op.assumption == Assumption::kEqual);
            return assumed;
        }
        case Assumption::kTop:
        case Assumption::kOrder:
        case Assumption::kSample: {
            const std::optional<int64_t> dim = dim_of(op, inputs);
            assumed.dim = dim.value_or(-1);
            assumed.width = dim ? values.size(*dim) : values.numel();
            assumed.is_router = op.name == "aten::topk";
            return assumed;
        }
        default:
            return assumed;
    }
}

void assume(const Assumed& assumed, std::span<const c10::IValue> outputs, const Routing& routing) {
    Assuming assuming(assumed, routing);
    const bool is_only = outputs.size() == 1;
    for (const c10::IValue& output : outputs) {
        if (output.isTensorList()) {
            for (const at::Tensor& one : output.toTensorVector()) assuming.give(one, is_only);
        } else if (output.isTensor()) {
            assuming.give(output.toTensor(), is_only);
        } else if (output.isBool()) {
            assuming.give_verdict();
        }
    }
    if (assuming.may_go_on()) return;
    // A loop may wait for another result. Its next read is one of unknown values, and is stopped.
    for (const c10::IValue& output : outputs) {
        for (const at::Tensor& tensor : tensors_of({&output, 1})) {
            if (is_plain_on_gpu(tensor)) forget_values(tensor);
        }
    }
}

}  // namespace profiler
