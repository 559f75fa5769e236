#include "hw/testbed/testbed.hpp"
