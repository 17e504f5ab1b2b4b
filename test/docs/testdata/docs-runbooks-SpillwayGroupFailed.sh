#### rolloutgroup/NAME
stands NAMESPACE mimir
stands rolloutgroup/NAME rolloutgroup/ingester
