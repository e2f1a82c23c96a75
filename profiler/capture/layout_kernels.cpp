#include "profiler/capture/layout_kernels.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/var_mean.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profiler {
namespace {

constexpr double kEps = 1e-12;
constexpr double kKeep = 0.9;
constexpr int64_t kHidden = 2;  // of "bji": the dimension that a LayerNorm normalizes
constexpr const char* kSum = "sum";
constexpr const char* kProbs = "softmax";
constexpr const char* kMask = "mask";
constexpr const char* kResidualSource = "residual";

/// The place of each letter of `to` in `from`.
std::vector<int64_t> permutation(const std::string& from, const std::string& to) {
    std::vector<int64_t> places;
    for (const char dimension : to) {
        places.push_back(static_cast<int64_t>(from.find(dimension)));
    }
    return places;
}

bool is_last(char dimension, const std::string& order) { return order.back() == dimension; }

}  // namespace

// ---- buffers ---------------------------------------------------------------------------------

LayoutBuffers::LayoutBuffers(const LayoutSizes& sizes, const at::Device& device)
    : sizes_(dimension_sizes(sizes)), device_(device) {}

const std::string& LayoutBuffers::dimensions(const std::string& name) const {
    return std::ranges::find(encoder_layer().tensors, name, &LayoutTensor::name)->dimensions;
}

at::Tensor LayoutBuffers::values(const std::string& name, at::IntArrayRef shape) {
    const auto [place, is_new] = tensors_.try_emplace(name);
    if (is_new) {
        auto generator = at::make_generator<at::CPUGeneratorImpl>(std::hash<std::string>()(name));
        at::Tensor drawn = at::randn(shape, generator, at::device(at::kCPU).dtype(at::kFloat));
        if (name.ends_with(kMask)) drawn = (drawn > -1.2816).to(at::kFloat).div_(kKeep);
        if (name.ends_with(kProbs)) drawn = at::_softmax(drawn, -1, false);
        place->second = drawn.to(device_);
    }
    return place->second;
}

at::Tensor LayoutBuffers::in_order(const std::string& key, const std::string& dimensions,
                                   const std::string& order) {
    const auto [place, is_new] = tensors_.try_emplace(key + ":" + order);
    if (is_new) {
        std::vector<int64_t> shape;
        for (const char dimension : dimensions) shape.push_back(sizes_[dimension]);
        place->second = values(key, shape).permute(permutation(dimensions, order)).contiguous();
    }
    return place->second;
}

at::Tensor LayoutBuffers::memory(const std::string& name, const std::string& order) {
    return in_order(name, dimensions(name), order);
}

at::Tensor LayoutBuffers::logical(const std::string& name, const std::string& order) {
    return memory(name, order).permute(permutation(order, dimensions(name)));
}

at::Tensor LayoutBuffers::beside(const std::string& name, const char* suffix,
                                 const std::string& order) {
    const std::string& dims = dimensions(name);
    return in_order(name + "." + suffix, dims, order).permute(permutation(order, dims));
}

std::pair<at::Tensor, at::Tensor> LayoutBuffers::statistics(const std::string& name,
                                                            const std::string& order) {
    const at::Tensor sum = beside(name, kSum, order);
    const auto [var, mean] = at::var_mean(sum, at::IntArrayRef{kHidden}, /*unbiased=*/false,
                                          /*keepdim=*/true);
    const at::Tensor rstd = at::rsqrt(var.add(kEps));
    const auto places = permutation(dimensions(name), order);
    return {mean.permute(places).contiguous(), rstd.permute(places).contiguous()};
}

at::Tensor LayoutBuffers::parameter(const std::string& name, at::IntArrayRef shape) {
    return values("parameter " + name, shape);
}

// ---- GEMMs -----------------------------------------------------------------------------------

namespace {

at::Tensor matrices(const at::Tensor& flat, const GemmForm& form, const GemmOperand& operand,
                    int64_t rows, int64_t columns) {
    return flat.as_strided({form.batch, rows, columns},
                           {operand.batch_stride, operand.row_stride, operand.column_stride});
}

bool is_contiguous(const GemmOperand& operand, int64_t rows, int64_t columns) {
    const bool by_row = operand.column_stride == 1 && operand.row_stride == columns;
    const bool by_column = operand.row_stride == 1 && operand.column_stride == rows;
    return operand.batch_stride == rows * columns && (by_row || by_column);
}

LayoutCall one_call(at::Tensor a, at::Tensor b, at::Tensor c, bool is_by_column) {
    if (is_by_column) {  // C' = B' A'
        a = std::exchange(b, a.transpose(1, 2)).transpose(1, 2);
        c = c.transpose(1, 2);
    }
    return [a, b, c]() mutable { at::bmm_out(c, a, b); };
}

LayoutCall call_each(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    struct Product {
        at::Tensor a, b, c;
    };
    std::vector<Product> products;
    for (int64_t i = 0; i < a.size(0); ++i) {
        products.push_back({a.select(0, i), b.select(0, i), c.select(0, i)});
    }
    return [products]() mutable {
        for (Product& product : products) at::mm_out(product.c, product.a, product.b);
    };
}

}  // namespace

std::vector<GemmCalls> gemm_calls(const GemmForm& form, bool is_cpu) {
    if (form.batch == 1) return {GemmCalls::kEach};
    if (!is_cpu) return {GemmCalls::kOne};
    if (is_contiguous(form.c, form.m, form.n)) return {GemmCalls::kOne, GemmCalls::kEach};
    return {GemmCalls::kEach};
}

LayoutCall gemm_call(const GemmForm& form, GemmCalls calls, const at::Tensor& a,
                     const at::Tensor& b, const at::Tensor& c) {
    const at::Tensor a_matrices = matrices(a, form, form.a, form.m, form.k);
    const at::Tensor b_matrices = matrices(b, form, form.b, form.k, form.n);
    const at::Tensor c_matrices = matrices(c, form, form.c, form.m, form.n);
    if (calls == GemmCalls::kEach) return call_each(a_matrices, b_matrices, c_matrices);
    return one_call(a_matrices, b_matrices, c_matrices, form.c.column_stride != 1);
}

// ---- the other ops ---------------------------------------------------------------------------

namespace {

/// What makes the call of one op.
class CallMaker {
public:
    CallMaker(const EncoderOp& op, const std::vector<std::string>& orders, LayoutBuffers& buffers)
        : op_(op), orders_(orders), buffers_(buffers) {}

    LayoutCall make() {
        switch (op_.kernel) {
            case LayoutKernel::kAddBias:
                return add_bias();
            case LayoutKernel::kSoftmax:
                return softmax();
            case LayoutKernel::kNorm:
                return norm();
            case LayoutKernel::kRelu:
                return relu();
            case LayoutKernel::kNormGradient:
                return norm_gradient();
            case LayoutKernel::kReluGradient:
                return relu_gradient();
            case LayoutKernel::kAdd:
                return add();
            case LayoutKernel::kSoftmaxGradient:
                return softmax_gradient();
            case LayoutKernel::kStack:
                return stack();
            case LayoutKernel::kGemm:
                break;
        }
        TORCH_CHECK(false, "a GEMM is no such op");
    }

private:
    const std::string& name(std::size_t place) const {
        const bool reads = place < op_.reads.size();
        return reads ? op_.reads[place] : op_.writes[place - op_.reads.size()];
    }
    at::Tensor logical(std::size_t place) { return buffers_.logical(name(place), orders_[place]); }
    at::Tensor memory(std::size_t place) { return buffers_.memory(name(place), orders_[place]); }
    at::Tensor mask(std::size_t place) { return beside(place, kMask); }
    at::Tensor beside(std::size_t place, const char* suffix) {
        return buffers_.beside(name(place), suffix, orders_[place]);
    }
    at::Tensor beside_memory(std::size_t place, const char* suffix) {
        const std::string& dims = buffers_.dimensions(name(place));
        return beside(place, suffix).permute(permutation(dims, orders_[place]));
    }
    int64_t size(char dimension) const { return buffers_.sizes()[dimension]; }

    /// y = part of the projection + bias
    LayoutCall add_bias() {
        const at::Tensor x = logical(0).select(0, op_.part);  // [h, p, b, j]
        const at::Tensor bias =
            buffers_.parameter(fmt::format("bias {}", op_.part), {size('h'), size('p'), 1, 1});
        return [x, bias, y = logical(1)]() mutable { at::add_out(y, x, bias); };
    }

    LayoutCall softmax() {
        const auto dim = static_cast<int64_t>(orders_[0].find('k'));
        const at::Tensor x = memory(0), keep = beside_memory(1, kMask);
        return [dim, x, keep, probs = beside_memory(1, kProbs), y = memory(1)]() mutable {
            at::_softmax_out(probs, x, dim, false);
            at::mul_out(y, probs, keep);
        };
    }

    LayoutCall softmax_gradient() {
        const auto dim = static_cast<int64_t>(orders_[0].find('k'));
        const at::Tensor dy = memory(0), keep = beside_memory(1, kMask);
        return [dim, dy, keep, probs = beside_memory(1, kProbs), dx = memory(2)]() mutable {
            const at::Tensor dprobs = at::mul(dy, keep);
            at::_softmax_backward_data_out(dx, dprobs, probs, dim, at::kFloat);
        };
    }

    /// y = LayerNorm(residual + dropout(x + bias)); saves the sum in the order of y.
    LayoutCall norm() {
        const at::Tensor x = logical(0), residual = logical(1), keep = mask(2);
        const at::Tensor bias = hidden_parameter("bias"), gamma = hidden_parameter("gamma"),
                         beta = hidden_parameter("beta");
        const bool is_native = is_last('i', orders_[2]);
        const int64_t hidden = size('i');
        LayoutBuffers& buffers = buffers_;
        return [=, &buffers, written = name(2), order = orders_[2], sum = beside(2, kSum),
                sum_memory = beside_memory(2, kSum), y = logical(2)]() mutable {
            const at::Tensor biased = at::add(x, bias);
            at::addcmul_out(sum, residual, biased, keep);
            if (is_native) {
                const auto [out, mean, rstd] =
                    at::native_layer_norm(sum_memory, {hidden}, gamma, beta, kEps);
                buffers.put(written, order, out);
                return;
            }
            const auto [var, mean] =
                at::var_mean(sum, at::IntArrayRef{kHidden}, /*unbiased=*/false, /*keepdim=*/true);
            at::sub_out(y, sum, mean);
            y.mul_(at::rsqrt(var.add(kEps)));
            at::addcmul_out(y, beta, y, gamma);
        };
    }

    /// The gradient of the sum, and that of what dropout dropped, both in the order of the output.
    LayoutCall norm_gradient() {
        const bool is_native = orders_[0] == orders_[1] && is_last('i', orders_[1]);
        return is_native ? native_norm_gradient() : composed_norm_gradient();
    }

    LayoutCall native_norm_gradient() {
        const at::Tensor dy = memory(0), sum = beside_memory(1, kSum), keep = mask(1);
        const auto [mean, rstd] = buffers_.statistics(name(1), orders_[1]);
        const at::Tensor gamma = hidden_parameter("gamma"), beta = hidden_parameter("beta");
        const int64_t hidden = size('i');
        const bool is_same_order = orders_[1] == orders_[2];
        const auto places = permutation(orders_[1], buffers_.dimensions(name(1)));
        return [=, mean = mean, rstd = rstd, residual = beside(2, kResidualSource),
                dx = logical(2)]() mutable {
            const auto [dsum, dgamma, dbeta] = at::native_layer_norm_backward(
                dy, sum, {hidden}, mean, rstd, gamma, beta, {true, true, true});
            const at::Tensor in_order = dsum.permute(places);
            if (!is_same_order) residual.copy_(in_order);
            at::mul_out(dx, is_same_order ? in_order : residual, keep);
        };
    }

    LayoutCall composed_norm_gradient() {
        const at::Tensor dy = logical(0), sum = beside(1, kSum), keep = mask(1);
        const auto places = permutation(orders_[1], buffers_.dimensions(name(1)));
        const auto [mean_memory, rstd_memory] = buffers_.statistics(name(1), orders_[1]);
        const at::Tensor mean = mean_memory.permute(places), rstd = rstd_memory.permute(places);
        const at::Tensor gamma = hidden_parameter("gamma");
        return [=, residual = beside(2, kResidualSource), dx = logical(2)]() mutable {
            const at::Tensor normed = at::sub(sum, mean).mul_(rstd);
            const at::Tensor by_element = at::mul(dy, normed);
            const at::Tensor dgamma = at::sum(by_element, at::IntArrayRef{0, 1});
            const at::Tensor dbeta = at::sum(dy, at::IntArrayRef{0, 1});
            const at::Tensor scaled = at::mul(dy, gamma);
            const at::Tensor mean_of_scaled = scaled.mean(at::IntArrayRef{kHidden}, true);
            const at::Tensor mean_of_product =
                at::mul(scaled, normed).mean(at::IntArrayRef{kHidden}, true);
            at::sub_out(residual, scaled, mean_of_scaled);
            residual.addcmul_(normed, mean_of_product, -1);
            residual.mul_(rstd);
            at::mul_out(dx, residual, keep);
        };
    }

    LayoutCall relu() {
        const at::Tensor x = logical(0), keep = mask(1);
        const at::Tensor bias = buffers_.parameter("up bias", {size('u')});
        return [x, keep, bias, y = logical(1)]() mutable {
            at::add_out(y, x, bias);
            y.relu_().mul_(keep);
        };
    }

    LayoutCall relu_gradient() {
        const at::Tensor dy = logical(0), y = logical(1), keep = mask(1);
        return [dy, y, keep, dx = logical(2)]() mutable {
            at::mul_out(dx, dy, keep);
            at::threshold_backward_out(dx, dx, y, 0);
            const at::Tensor dbias = at::sum(dx, at::IntArrayRef{0, 1});
        };
    }

    LayoutCall add() {
        const at::Tensor a = logical(0), b = logical(1);
        return [a, b, c = logical(2)]() mutable { at::add_out(c, a, b); };
    }

    /// A part of the projection's gradient, and the gradient of its bias.
    LayoutCall stack() {
        const at::Tensor x = logical(0);  // [h, p, b, j]
        return [x, y = logical(1).select(0, op_.part)]() mutable {
            y.copy_(x);
            const at::Tensor dbias = at::sum(x, at::IntArrayRef{2, 3});
        };
    }

    at::Tensor hidden_parameter(const char* what) { return buffers_.parameter(what, {size('i')}); }

    const EncoderOp& op_;
    const std::vector<std::string>& orders_;
    LayoutBuffers& buffers_;
};

}  // namespace

LayoutCall layout_call(const EncoderOp& op, const std::vector<std::string>& orders,
                       LayoutBuffers& buffers) {
    return CallMaker(op, orders, buffers).make();
}

}  // namespace profiler
