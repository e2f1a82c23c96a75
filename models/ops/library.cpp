#include <torch/library.h>

// The schemas of torch.ops.tempo. Each differentiable op stands on a pair without autograd,
// `*_forward` and `*_backward`, which is what CPU, CUDA and Meta implement; the differentiable op
// is one kernel for all of them (in its own file, under the dispatch key Autograd).
//
// masks  "byte", "bit" or "philox": how a mask is kept
// key    [seed, rank, step, layer, site]: which dropout mask is drawn (kernels/dropout.h)

TORCH_LIBRARY(tempo, m) {
    m.def("dropout(Tensor x, float p, str masks, int[] key) -> Tensor");
    m.def("dropout_forward(Tensor x, float p, str masks, int[] key) -> (Tensor, Tensor)");
    m.def("dropout_backward(Tensor dy, Tensor keep_mask, float p, str masks, int[] key) -> Tensor");

    m.def("gelu(Tensor x, bool tanh, str masks) -> Tensor");
    m.def("gelu_forward(Tensor x, bool tanh, str masks) -> (Tensor, Tensor)");
    m.def("gelu_backward(Tensor dy, Tensor y, Tensor branch_mask, bool tanh, str masks) -> Tensor");
    m.def("gelu_linear(Tensor x, Tensor weight, Tensor bias, bool tanh) -> Tensor");

    m.def("layer_norm(Tensor x, Tensor gamma, Tensor beta, float eps, str save) -> Tensor");
    m.def(
        "layer_norm_forward(Tensor x, Tensor gamma, Tensor beta, float eps, str save)"
        " -> (Tensor, Tensor, Tensor)");
    m.def(
        "layer_norm_backward(Tensor dy, Tensor saved, Tensor gamma, Tensor beta, Tensor rstd,"
        " str save) -> (Tensor, Tensor, Tensor)");

    m.def(
        "attention_core(Tensor scores, Tensor value, Tensor? additive_mask, float scale,"
        " bool causal, int num_heads, float p, str masks, int[] key) -> Tensor");
    m.def(
        "softmax_dropout_forward(Tensor scores, Tensor? additive_mask, float scale, bool causal,"
        " int num_heads, float p, str masks, int[] key) -> (Tensor, Tensor, Tensor)");
    m.def(
        "softmax_dropout_recompute(Tensor probs, Tensor keep_mask, float p, str masks, int[] key)"
        " -> Tensor");
    m.def(
        "softmax_dropout_backward_(Tensor(a!) ddropped, Tensor probs, Tensor keep_mask,"
        " float scale, float p, str masks, int[] key) -> Tensor(a!)");
}
