#pragma once

#include <vector>

namespace profiler::virtual_gpu {

/// What the torch of this process was built with. Versions are numbers as the libraries count them.
struct TorchInstall {
    int cuda = 0;                   // 12080: CUDA 12.8
    int cudnn = 0;                  // 91002: cuDNN 9.10.2
    int nccl = 0;                   // 22705: NCCL 2.27.5
    std::vector<int> capabilities;  // that it has code for, ascending: 75, 80
};

/// Read from the folder of torch when first asked after torch is loaded. What does not stand there
/// is that of the headers which the virtual GPU was built with.
const TorchInstall& torch_install();

}  // namespace profiler::virtual_gpu
