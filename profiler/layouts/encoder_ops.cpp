#include "profiler/layouts/encoder_ops.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace profiler {

using Code = LayoutKernel;

namespace {

using Role = LayoutRole;

struct TensorRow {
    const char* name;
    const char* dimensions;
    const char* torch;  // the orders of torch's modules, with blanks between
    Role role = Role::kOther;
};

// The order of the dimensions of a weight's row is that of torch.nn.Linear: outputs, then inputs.
constexpr TensorRow kTensors[] = {
    {"input", "bji", "bji", Role::kChain},
    {"qkv_weight", "chpi", "chpi", Role::kWeight},
    {"projected", "chpbj", "bjchp"},
    {"query", "hpbj", "bhjp"},
    {"key", "hpbk", "bhkp"},
    {"value", "hpbk", "bhkp"},
    {"scores", "hbjk", "bhjk"},
    {"probs", "hbjk", "bhjk"},
    {"context", "hpbj", "bhjp bjhp"},
    {"output_weight", "hpi", "ihp", Role::kWeight},
    {"attention", "bji", "bji"},
    {"normed", "bji", "bji"},
    {"up_weight", "ui", "ui", Role::kWeight},
    {"up", "bju", "bju"},
    {"activation", "bju", "bju"},
    {"down_weight", "iu", "iu", Role::kWeight},
    {"down", "bji", "bji"},
    {"output", "bji", "bji", Role::kChain},
    {"d_output", "bji", "bji", Role::kChain},
    {"d_down", "bji", "bji"},
    {"d_activation", "bju", "bju"},
    {"d_up", "bju", "bju"},
    {"d_mlp", "bji", "bji"},
    {"d_normed", "bji", "bji"},
    {"d_attention", "bji", "bji"},
    {"d_context", "hpbj", "bhjp bjhp"},
    {"d_probs", "hbjk", "bhjk"},
    {"d_value", "hpbk", "bhkp"},
    {"d_scores", "hbjk", "bhjk"},
    {"d_query", "hpbj", "bhjp"},
    {"d_key", "hpbk", "bhkp"},
    {"d_projected", "chpbj", "bjchp"},
    {"d_qkv", "bji", "bji"},
    {"d_input", "bji", "bji", Role::kChain},
};

std::vector<EncoderOp> forward_ops() {
    return {
        {"qkv", Code::kGemm, {"input", "qkv_weight"}, {"projected"}},
        {"bias query", Code::kAddBias, {"projected"}, {"query"}, false, 0},
        {"bias key", Code::kAddBias, {"projected"}, {"key"}, false, 1},
        {"bias value", Code::kAddBias, {"projected"}, {"value"}, false, 2},
        {"scores", Code::kGemm, {"query", "key"}, {"scores"}},
        {"softmax", Code::kSoftmax, {"scores"}, {"probs"}},
        {"context", Code::kGemm, {"value", "probs"}, {"context"}},
        {"output", Code::kGemm, {"context", "output_weight"}, {"attention"}},
        {"norm 1", Code::kNorm, {"attention", "input"}, {"normed"}},
        {"up", Code::kGemm, {"normed", "up_weight"}, {"up"}},
        {"relu", Code::kRelu, {"up"}, {"activation"}},
        {"down", Code::kGemm, {"activation", "down_weight"}, {"down"}},
        {"norm 2", Code::kNorm, {"down", "normed"}, {"output"}},
    };
}

std::vector<EncoderOp> backward_ops() {
    return {
        {"norm 2 dX", Code::kNormGradient, {"d_output", "output"}, {"d_down"}, true},
        {"down dX", Code::kGemm, {"d_down", "down_weight"}, {"d_activation"}, true},
        {"down dW", Code::kGemm, {"d_down", "activation"}, {"down_weight"}, true},
        {"relu dX", Code::kReluGradient, {"d_activation", "activation"}, {"d_up"}, true},
        {"up dX", Code::kGemm, {"d_up", "up_weight"}, {"d_mlp"}, true},
        {"up dW", Code::kGemm, {"d_up", "normed"}, {"up_weight"}, true},
        {"residual 2", Code::kAdd, {"d_mlp", "d_down"}, {"d_normed"}, true},
        {"norm 1 dX", Code::kNormGradient, {"d_normed", "normed"}, {"d_attention"}, true},
        {"output dX", Code::kGemm, {"d_attention", "output_weight"}, {"d_context"}, true},
        {"output dW", Code::kGemm, {"context", "d_attention"}, {"output_weight"}, true},
        {"context dP", Code::kGemm, {"d_context", "value"}, {"d_probs"}, true},
        {"context dV", Code::kGemm, {"d_context", "probs"}, {"d_value"}, true},
        {"softmax dX", Code::kSoftmaxGradient, {"d_probs", "probs"}, {"d_scores"}, true},
        {"scores dQ", Code::kGemm, {"key", "d_scores"}, {"d_query"}, true},
        {"scores dK", Code::kGemm, {"query", "d_scores"}, {"d_key"}, true},
        {"stack query", Code::kStack, {"d_query"}, {"d_projected"}, true, 0},
        {"stack key", Code::kStack, {"d_key"}, {"d_projected"}, true, 1},
        {"stack value", Code::kStack, {"d_value"}, {"d_projected"}, true, 2},
        {"qkv dX", Code::kGemm, {"d_projected", "qkv_weight"}, {"d_qkv"}, true},
        {"qkv dW", Code::kGemm, {"d_projected", "input"}, {"qkv_weight"}, true},
        {"residual 1", Code::kAdd, {"d_qkv", "d_attention"}, {"d_input"}, true},
    };
}

EncoderLayer make_layer() {
    EncoderLayer layer;
    for (const TensorRow& row : kTensors) {
        layer.tensors.push_back({.name = row.name, .dimensions = row.dimensions, .role = row.role});
    }
    layer.ops = forward_ops();
    for (EncoderOp& op : backward_ops()) layer.ops.push_back(std::move(op));
    return layer;
}

/// The orders of an op's tensors, as texts.
using Orders = std::vector<std::string>;

class GraphMaker {
public:
    explicit GraphMaker(const LayoutSizes& sizes) : sizes_(dimension_sizes(sizes)) {
        graph_.tensors = encoder_layer().tensors;
    }

    LayoutGraph make() {
        std::vector<std::vector<Orders>> configurations;
        for (const EncoderOp& op : encoder_layer().ops) {
            graph_.ops.push_back(op_of(op));
            configurations.push_back(op.kernel == Code::kGemm ? gemm_orders(graph_.ops.back())
                                                              : std::vector<Orders>());
        }
        for (std::size_t i = 0; i < configurations.size(); ++i) {
            note_orders(graph_.ops[i], configurations[i]);
        }
        for (LayoutTensor& tensor : graph_.tensors) add_orders(tensor);
        for (std::size_t i = 0; i < configurations.size(); ++i) {
            const EncoderOp& op = encoder_layer().ops[i];
            if (op.kernel != Code::kGemm) configurations[i] = other_orders(op, graph_.ops[i]);
            for (const Orders& orders : configurations[i]) add(orders, graph_.ops[i]);
        }
        return std::move(graph_);
    }

private:
    std::size_t index_of(const std::string& name) const {
        const auto found = std::ranges::find(graph_.tensors, name, &LayoutTensor::name);
        return static_cast<std::size_t>(found - graph_.tensors.begin());
    }

    LayoutOp op_of(const EncoderOp& op) const {
        LayoutOp row{.name = op.name,
                     .op_class = class_of(op.kernel),
                     .is_backward = op.is_backward,
                     .num_reads = op.reads.size()};
        for (const auto* names : {&op.reads, &op.writes}) {
            for (const std::string& name : *names) row.tensors.push_back(index_of(name));
        }
        return row;
    }

    const std::string& dimensions(const LayoutOp& op, std::size_t place) const {
        return graph_.tensors[op.tensors[place]].dimensions;
    }

    std::vector<Orders> gemm_orders(const LayoutOp& op) const {
        std::vector<Orders> found;
        for (const std::string& a : all_orders(dimensions(op, 0))) {
            for (const std::string& b : all_orders(dimensions(op, 1))) {
                for (const std::string& c : all_orders(dimensions(op, 2))) {
                    if (!gemm_forms({a, b, c}, sizes_).empty()) found.push_back({a, b, c});
                }
            }
        }
        return found;
    }

    void note_orders(const LayoutOp& op, const std::vector<Orders>& configurations) {
        for (const Orders& orders : configurations) {
            for (std::size_t i = 0; i < orders.size(); ++i)
                orders_[op.tensors[i]].insert(orders[i]);
        }
    }

    /// What GEMMs use; all orders of a tensor that no GEMM uses.
    void add_orders(LayoutTensor& tensor) {
        const auto used = orders_.find(index_of(tensor.name));
        tensor.orders = used == orders_.end()
                            ? all_orders(tensor.dimensions)
                            : std::vector<std::string>(used->second.begin(), used->second.end());
    }

    std::vector<Orders> other_orders(const EncoderOp& op, const LayoutOp& row) const {
        std::vector<Orders> all{{}};
        for (const std::size_t tensor : row.tensors) {
            std::vector<Orders> longer;
            for (const Orders& orders : all) {
                for (const std::string& order : graph_.tensors[tensor].orders) {
                    longer.push_back(orders);
                    longer.back().push_back(order);
                }
            }
            all = std::move(longer);
        }
        if (op.kernel != Code::kSoftmax && op.kernel != Code::kSoftmaxGradient) return all;
        std::erase_if(all, [](const Orders& orders) {
            return std::ranges::any_of(
                orders, [&](const std::string& order) { return order != orders.front(); });
        });
        return all;
    }

    void add(const Orders& orders, LayoutOp& op) const {
        LayoutConfiguration configuration;
        for (std::size_t i = 0; i < orders.size(); ++i) {
            configuration.orders.push_back(
                static_cast<uint8_t>(graph_.tensors[op.tensors[i]].find(orders[i])));
        }
        op.configurations.push_back(std::move(configuration));
    }

    const DimensionSizes sizes_;
    LayoutGraph graph_;
    std::map<std::size_t, std::set<std::string>> orders_;  // by tensor
};

}  // namespace

const EncoderLayer& encoder_layer() {
    static const EncoderLayer layer = make_layer();
    return layer;
}

OpClass class_of(LayoutKernel kernel) {
    switch (kernel) {
        case Code::kGemm:
            return OpClass::kContraction;
        case Code::kSoftmax:
        case Code::kNorm:
        case Code::kNormGradient:
        case Code::kSoftmaxGradient:
            return OpClass::kNormalization;
        case Code::kAddBias:
        case Code::kRelu:
        case Code::kReluGradient:
        case Code::kAdd:
        case Code::kStack:
            return OpClass::kElementWise;
    }
    return OpClass::kOther;
}

DimensionSizes dimension_sizes(const LayoutSizes& sizes) {
    DimensionSizes result;
    result.set('b', sizes.batch_size);
    result.set('j', sizes.seq_len);
    result.set('k', sizes.seq_len);
    result.set('h', sizes.num_heads);
    result.set('p', sizes.hidden_size / sizes.num_heads);
    result.set('i', sizes.hidden_size);
    result.set('u', sizes.intermediate_size);
    result.set('c', 3);
    return result;
}

LayoutGraph make_layout_graph(const LayoutSizes& sizes) { return GraphMaker(sizes).make(); }

std::vector<std::vector<std::string>> default_orders() {
    std::vector<std::vector<std::string>> orders;
    for (const TensorRow& row : kTensors) {
        std::vector<std::string>& of_tensor = orders.emplace_back();
        std::string_view rest = row.torch;
        while (true) {
            const std::size_t blank = rest.find(' ');
            of_tensor.emplace_back(rest.substr(0, blank));
            if (blank == rest.npos) break;
            rest.remove_prefix(blank + 1);
        }
    }
    return orders;
}

}  // namespace profiler
