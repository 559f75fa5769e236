// The one function that the program looks up in the module of the GPU runner.
#pragma once
#include "hw/run/rank_device.hpp"

extern "C" {
/// What make_gpu does.
void simsync_make_gpu(const simsync::DeviceRequest& request, simsync::KeyValueStore& store, simsync::DeviceOfRank& out);
}
