// Hopper (mbarriers, TMA, wgmma) is not modelled yet.
#pragma once
