package outbound

// Permits is [Network.permits].
var Permits = (*Network).permits
