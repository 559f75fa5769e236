#include "platforms/cluster.hpp"
