#### spillway forecast
zone zone-a querier
zone zone-b querier
spillway watch rolloutgroup/querier -n mimir --timeout 2m
zone zone-a querier never-ready
zone zone-b querier never-ready
explains 'zone-[ab]' rolloutgroup/querier -n mimir
